"""`children`: from a TrainJob, its runtime and its Layout to every object that must exist for it.

Names, replicated jobs and counts are upstream's, since Kueue computes them again. What is added
stands inside the pods: an MPI job's are filled as an MPIJob's are, others get the variables of
their policy, if it has any, and our label. The Secret is made apart, because its keys are; so is
the snapshot, because everything else comes from what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.effective.combine import TRAINER, Effective, ReplicatedJob
from mpi_trainer.api.effective.combine import effective as put_together
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB, without_reserved
from mpi_trainer.api.kinds.runtime import FLUX, MPI, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation.compatibility import HOSTFILE_VOLUME, SSH_VOLUME
from mpi_trainer.layout import policies
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.trainjob import layout as laid_out
from mpi_trainer.render import agent_scripts, conflicts, names, network_policies, secrets
from mpi_trainer.render.configmaps import config_map
from mpi_trainer.render.frame import Facts, Frame, Names, Object, frame
from mpi_trainer.render.gang import pod_groups
from mpi_trainer.render.gang.model import PlannedGang
from mpi_trainer.render.pods import filled, marked
from mpi_trainer.render.secrets import KeyPlan, Part
from mpi_trainer.render.trainjob import flux, rendezvous, reporting
from mpi_trainer.render.trainjob.jobsets import job_set

__all__ = [
    "Children",
    "Facts",
    "Object",
    "Rendered",
    "children",
    "rendered",
    "secret",
]

# The launcher's and the nodes' templates come from the runtime.
_PLACES = conflicts.Places(("spec", "runtimeRef"), ("spec", "runtimeRef"), ("spec", "trainer"))


class Children(msgspec.Struct, frozen=True):
    """`trust`: the ConfigMap by which a program trusts the status endpoint."""

    job_set: Object
    config_map: Object | None = None
    trust: Object | None = None
    network_policies: tuple[Object, ...] = ()
    gang: PlannedGang | None = None

    @property
    def guards(self) -> tuple[Object, ...]:
        """What must be there before the first pod."""
        return (*self.network_policies, *(() if self.gang is None else (self.gang.pod_group,)))


def children(
    job: TrainJob, effective: Effective, runtime: Runtime, layout: Layout | None, facts: Facts
) -> Children:
    """All children but Secret and snapshot; `layout` where the job is one of MPI.

    InvalidJob where the runtime's templates are in their way.
    """
    pods = {one.name: _plain(one, job) for one in effective.jobs}
    pods = rendezvous.with_variables(pods, job, effective, runtime)
    texts: Object | None = None
    if effective.policy == FLUX:
        broker = policies.flux.broker(effective, job.namespace, facts.domain)
        pods, texts = flux.with_flux(pods, job, effective, broker), flux.config_map(job, broker)
    elif layout is not None:
        shared = _frame(layout, job, facts)
        pods, texts = _filled(pods, effective, layout, shared), config_map(shared)
    trust: Object | None = None
    if facts.endpoint is not None:
        pods = reporting.with_endpoint(pods, job, effective, facts.endpoint)
        trust = reporting.config_map(job, facts.endpoint)
    planned = pod_groups.of_trainjob(job, effective, runtime, facts)
    if planned is not None:
        members = [one.name for one in pod_groups.members(effective)]
        pods = {**pods, **{name: planned.marks.on(pods[name]) for name in members}}
    notes = {} if layout is None else agent_scripts.mark(layout.launcher)
    closed = network_policies.of_trainjob(job, effective, facts)
    return Children(job_set(job, effective, pods, notes), texts, trust, closed, planned)


class Rendered(msgspec.Struct, frozen=True):
    """A job put together with its runtime; `layout` is None where it is not one of MPI, and `keys`
    where it has no Secret."""

    effective: Effective
    layout: Layout | None
    children: Children
    keys: KeyPlan | None


def rendered(job: TrainJob, runtime: Runtime, facts: Facts) -> Rendered:
    """InvalidJob where the runtime's templates are in the children's way."""
    whole = put_together(job, runtime)
    plan = laid_out(job, whole, facts.domain) if whole.policy == MPI else None
    keys = _keys(plan, job) if plan is not None else None
    if whole.policy == FLUX:
        keys = flux.keys(job)
    return Rendered(whole, plan, children(job, whole, runtime, plan, facts), keys)


def secret(layout: Layout, job: TrainJob, parts: Mapping[Part, str]) -> Object:
    """The job's Secret with these keys."""
    return secrets.secret(_frame(layout, job, Facts()), parts)


def _filled(
    pods: Mapping[str, Object], effective: Effective, layout: Layout, shared: Frame
) -> dict[str, Object]:
    wrong = conflicts.errors(layout, shared, _PLACES)
    if wrong:
        raise InvalidJob(wrong)
    given = dict(pods)
    for one in (layout.launcher, *layout.workers[:1]):
        name = next(j.name for j in effective.jobs if j.role == _ROLES[one.role])
        metadata = marked(given[name].get("metadata") or {}, one.labels)
        given[name] = {"metadata": metadata, "spec": _lasting(filled(one, shared))}
    return given


def _keys(layout: Layout, job: TrainJob) -> KeyPlan:
    parts = frozenset(key.part for pod in layout.pods for key in pod.keys)
    return KeyPlan(parts, lambda texts: secret(layout, job, texts))


_ROLES = {"launcher": "launcher", "worker": "node"}


def _frame(layout: Layout, job: TrainJob, facts: Facts) -> Frame:
    named = Names(
        config_map=names.hostfile(job.name),
        config_volume=HOSTFILE_VOLUME,
        secret=names.ssh_secret(job.name),
        ssh_volume=SSH_VOLUME,
    )
    return frame(layout, job, named, facts)


def _lasting(spec: Object) -> Object:
    """A pod that fails is replaced, not restarted in place, unless the runtime says otherwise.

    The log of each try stays then; in place, it would go with the last one.
    """
    return {"restartPolicy": "Never", **spec}


def _plain(one: ReplicatedJob, job: TrainJob) -> Object:
    """The pod template as merged, with our label; one whose pods train keeps its failed pods."""
    pod = _labelled(one.template.content, job)
    return {**pod, "spec": _lasting(pod.get("spec") or {})} if one.role == TRAINER else pod


def _labelled(pod: Object, job: TrainJob) -> Object:
    given: Object = pod.get("metadata") or {}
    labels = {**without_reserved(given.get("labels") or {}), LABEL_TRAINJOB: job.name}
    own: Object = {**given, "labels": labels}
    if given.get("annotations"):
        own["annotations"] = without_reserved(given["annotations"])
    return {**pod, "metadata": own}
