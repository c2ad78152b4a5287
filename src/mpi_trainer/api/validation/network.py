"""Network settings (area 4): a closed network must be one that can be closed.

A NetworkPolicy holds for a pod's own network. One that lives in its node's, or has a second one
beside it, lies outside (AC-13).
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping

import msgspec

from mpi_trainer.api.effective.combine import Effective
from mpi_trainer.api.errors import FORBIDDEN, SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.annotations import NETWORK_EGRESS, NETWORK_POLICY
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.kinds.network_isolation import (
    EGRESS_WORDS,
    NO_DEFAULT,
    IsolationDefault,
    isolation,
    ranges,
)
from mpi_trainer.api.kinds.pods import PodTemplate, TemplateView
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import rules
from mpi_trainer.api.validation.own_annotations import PATH
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode

MULTUS = "k8s.v1.cni.cncf.io/networks"


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    host_network: bool | None = None


class _Template(msgspec.Struct, frozen=True):
    spec: _Spec | None = None


def egress_from_flag(text: str) -> str:
    """For the command lines of controller and webhook."""
    wrong = "" if text in EGRESS_WORDS else ranges(text)[1]
    if wrong:
        raise ArgumentTypeError(f"{text!r}: {wrong}")
    return text


def errors(job: MPIJob, default: IsolationDefault = NO_DEFAULT) -> rules.Errors:
    """`default` is the administrator's."""
    asks = _who_asks(job, default)
    for role, template in _closed(job, default):
        if on_node(template):
            path = ("spec", "mpiReplicaSpecs", role, "template", "spec", "hostNetwork")
            yield _on_node(path, True, asks)


def warnings(job: MPIJob) -> rules.Errors:
    yield from _egress_alone(job)
    for role, template in _closed(job, NO_DEFAULT):
        if MULTUS in _annotations(template):
            where = ("spec", "mpiReplicaSpecs", role, "template", "metadata", "annotations", MULTUS)
            yield _second_network(where)


def trainjob_errors(
    job: TrainJob, together: Effective, default: IsolationDefault = NO_DEFAULT
) -> rules.Errors:
    """At the runtime, whose templates say what network its pods have."""
    if isolation(job.metadata.annotations, default) is None:
        return
    for one in together.jobs:
        if on_node(one.template):
            path, name = ("spec", "runtimeRef", "name"), job.spec.runtime_ref.name
            asks = f"its {one.name} has hostNetwork: {_who_asks(job, default)}"
            yield _on_node(path, name, asks)


def trainjob_warnings(job: TrainJob, together: Effective) -> rules.Errors:
    yield from _egress_alone(job)
    if isolation(job.metadata.annotations) is not None:
        for one in together.jobs:
            if MULTUS in _annotations(one.template):
                yield _second_network(("spec", "runtimeRef", "name"))
                return


def _who_asks(job: MPIJob | TrainJob, default: IsolationDefault) -> str:
    if NETWORK_POLICY in job.metadata.annotations or default == NO_DEFAULT:
        return f"{NETWORK_POLICY} asks for one"
    return f"this cluster closes the network of every job without {NETWORK_POLICY}"


def _on_node(path: Path, value: bool | str, asks: str) -> FieldError:
    rule = f"no NetworkPolicy holds in a node's network, and {asks}"
    remedy = f"remove hostNetwork, or set {NETWORK_POLICY} to none"
    return FieldError(path, FORBIDDEN, value, rule, remedy)


def _second_network(path: Path) -> FieldError:
    rule = "a second network lies outside NetworkPolicy"
    remedy = "close it by a MultiNetworkPolicy, or remove it"
    return FieldError(path, SUSPICIOUS, rule=rule, remedy=remedy)


def _egress_alone(job: MPIJob | TrainJob) -> rules.Errors:
    given = job.metadata.annotations
    if NETWORK_EGRESS in given and isolation(given) is None:
        rule = "it has no effect where the job's network is open"
        remedy = f"set {NETWORK_POLICY} to restricted, unless your cluster closes all networks"
        yield FieldError((*PATH, NETWORK_EGRESS), SUSPICIOUS, given[NETWORK_EGRESS], rule, remedy)


def on_node(template: PodTemplate) -> bool:
    """Whether its pods have their node's network. Nothing else of it is read: this is asked often,
    on an event loop."""
    try:
        spec = typed.decode(template.json, _Template).spec
    except msgspec.ValidationError:
        return False  # What is no truth value the API server refuses.
    return spec is not None and bool(spec.host_network)


def _annotations(template: PodTemplate) -> Mapping[str, str]:
    return decode(TemplateView, template.content).value.metadata.annotations


def _closed(job: MPIJob, default: IsolationDefault) -> Iterator[tuple[str, PodTemplate]]:
    """The roles of a job whose network is to be closed, with their templates."""
    if isolation(job.metadata.annotations, default) is not None:
        for role in (LAUNCHER, WORKER):
            spec = (job.spec.mpi_replica_specs or {}).get(role)
            if spec is not None:
                yield role, spec.template
