"""Network settings (area 4): a closed network must be one that can be closed.

A NetworkPolicy holds for a pod's own network. One that lives in its node's, or has a second one
beside it, lies outside (AC-13).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpi_trainer.api.errors import FORBIDDEN, SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.annotations import NETWORK_POLICY, RESTRICTED
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.kinds.pods import TemplateView
from mpi_trainer.api.validation import rules
from mpi_trainer.api.validation.own_annotations import PATH
from mpi_trainer.api.yaml.decode import decode

MULTUS = "k8s.v1.cni.cncf.io/networks"

_SETTING: Path = (*PATH, NETWORK_POLICY)


def errors(job: MPIJob) -> rules.Errors:
    for role, view in _closed(job):
        if view.spec.host_network:
            path = ("spec", "mpiReplicaSpecs", role, "template", "spec", "hostNetwork")
            rule = f"no NetworkPolicy holds in a node's network, and {NETWORK_POLICY} asks for one"
            yield FieldError(path, FORBIDDEN, True, rule, "remove one of the two")


def warnings(job: MPIJob) -> rules.Errors:
    for n, (role, view) in enumerate(_closed(job)):
        if n == 0:
            rule = "this version makes no NetworkPolicy of its own, and nothing is closed by this"
            remedy = "apply policies for the job's pods beside it"
            yield FieldError(_SETTING, SUSPICIOUS, RESTRICTED, rule, remedy)
        if MULTUS in view.metadata.annotations:
            where = ("spec", "mpiReplicaSpecs", role, "template", "metadata", "annotations", MULTUS)
            rule = "a second network lies outside NetworkPolicy"
            remedy = "close it by a MultiNetworkPolicy, or remove it"
            yield FieldError(where, SUSPICIOUS, rule=rule, remedy=remedy)


def _closed(job: MPIJob) -> Iterator[tuple[str, TemplateView]]:
    """The roles of a job whose network is to be closed, with their templates."""
    if job.metadata.annotations.get(NETWORK_POLICY) == RESTRICTED:
        for role in (LAUNCHER, WORKER):
            spec = (job.spec.mpi_replica_specs or {}).get(role)
            if spec is not None:
                yield role, decode(TemplateView, spec.template.content).value
