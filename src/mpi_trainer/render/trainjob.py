"""`children`: from a TrainJob, its runtime and its Layout to every object that must exist for it.

Names, replicated jobs and counts are upstream's, since Kueue computes them again. What is added
stands inside the pods: an MPI job's are filled as an MPIJob's are, a torch job's get torchrun's
variables, others nothing but our label. The Secret is made apart, because its keys are; so is the
snapshot, because everything else comes from what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.effective import TRAINER, Effective
from mpi_trainer.api.effective import effective as put_together
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.reserved import free
from mpi_trainer.api.runtime import MPI, TORCH, Runtime
from mpi_trainer.api.tailoring import NODE_CONTAINER
from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.layout import torch
from mpi_trainer.layout.model import Layout
from mpi_trainer.layout.trainjob import LABEL_TRAINJOB
from mpi_trainer.layout.trainjob import layout as laid_out
from mpi_trainer.render import agentscripts, conflicts, secrets
from mpi_trainer.render.configmaps import config_map
from mpi_trainer.render.frame import Facts, Frame, Names, Object, frame
from mpi_trainer.render.jobsets import job_set
from mpi_trainer.render.pods import filled, marked
from mpi_trainer.render.secrets import Part

__all__ = [
    "Children",
    "Facts",
    "Object",
    "Rendered",
    "children",
    "rendered",
    "secret",
    "secret_name",
]

# The launcher's and the nodes' templates come from the runtime.
_PLACES = conflicts.Places(("spec", "runtimeRef"), ("spec", "runtimeRef"), ("spec", "trainer"))


class Children(msgspec.Struct, frozen=True):
    job_set: Object
    config_map: Object | None = None


def children(
    job: TrainJob, effective: Effective, runtime: Runtime, layout: Layout | None, facts: Facts
) -> Children:
    """All children but Secret and snapshot; `layout` where the job is one of MPI.

    InvalidJob where the runtime's templates are in their way.
    """
    pods = {one.name: _labelled(one.template.content, job) for one in effective.jobs}
    if effective.policy == TORCH:
        for name, container in torch.targets(effective, runtime):
            _give(pods.get(name, {}), container, effective)
        _open(pods, effective)
    if effective.policy != MPI or layout is None:
        return Children(job_set(job, effective, pods, {}))
    shared = _frame(layout, job, facts)
    wrong = conflicts.errors(layout, shared, _PLACES)
    if wrong:
        raise InvalidJob(wrong)
    for one in (layout.launcher, *layout.workers[:1]):
        name = next(j.name for j in effective.jobs if j.role == _ROLES[one.role])
        given = pods[name].get("metadata") or {}
        pods[name] = {"metadata": marked(given, one.labels), "spec": _lasting(filled(one, shared))}
    notes = agentscripts.mark(layout.launcher)
    return Children(job_set(job, effective, pods, notes), config_map(shared))


class Rendered(msgspec.Struct, frozen=True):
    """A job put together with its runtime; `layout` is None where it is not one of MPI."""

    effective: Effective
    layout: Layout | None
    children: Children


def rendered(job: TrainJob, runtime: Runtime, domain: str = "") -> Rendered:
    """InvalidJob where the runtime's templates are in the children's way."""
    whole = put_together(job, runtime)
    plan = laid_out(job, whole, domain) if whole.policy == MPI else None
    return Rendered(whole, plan, children(job, whole, runtime, plan, Facts(domain=domain)))


def secret(layout: Layout, job: TrainJob, parts: Mapping[Part, str]) -> Object:
    """The job's Secret with these keys."""
    return secrets.secret(_frame(layout, job, Facts()), parts)


def secret_name(job: str) -> str:
    return f"{job}-mpi-ssh-auth"


_ROLES = {"launcher": "launcher", "worker": "node"}


def _frame(layout: Layout, job: TrainJob, facts: Facts) -> Frame:
    named = Names(
        config_map=f"{job.name}-mpi-hostfile",
        config_volume="mpi-hostfile",
        secret=secret_name(job.name),
        ssh_volume="mpi-ssh-auth",
    )
    return frame(layout, job, named, facts)


def _lasting(spec: Object) -> Object:
    """A pod that fails is replaced, not restarted in place, unless the runtime says otherwise.

    The log of each try stays then; in place, it would go with the last one.
    """
    return {"restartPolicy": "Never", **spec}


def _labelled(pod: Object, job: TrainJob) -> Object:
    given: Object = pod.get("metadata") or {}
    labels = {**free(given.get("labels") or {}), LABEL_TRAINJOB: job.name}
    own: Object = {**given, "labels": labels}
    if given.get("annotations"):
        own["annotations"] = free(given["annotations"])
    return {**pod, "metadata": own}


def _give(pod: Object, container: str, effective: Effective) -> None:
    """torchrun's variables to one container; ours win over those of the same name."""
    spec: Object = pod.get("spec") or {}
    ours = torch.variables(effective)
    names = {variable["name"] for variable in ours}
    for one in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if one.get("name") == container:
            kept = [v for v in one.get("env") or () if v.get("name") not in names]
            one["env"] = [*kept, *ours]


def _open(pods: Mapping[str, Object], effective: Effective) -> None:
    """The port where nodes meet, on the container that listens there."""
    trainer = effective.job(TRAINER)
    spec: Object = pods[trainer.name].get("spec") or {} if trainer is not None else {}
    for one in spec.get("containers") or ():
        ports: list[Object] = one.get("ports") or []
        open_already = any(p.get("containerPort") == torch.MASTER_PORT for p in ports)
        if one.get("name") == NODE_CONTAINER and not open_already:
            one["ports"] = [*ports, {"containerPort": torch.MASTER_PORT, "protocol": "TCP"}]
