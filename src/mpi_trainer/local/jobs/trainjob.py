"""A TrainJob as the local executor runs it. Pure.

The executor has one description of what it runs, with MPIJob's fields: pods, attempts, suspension,
deadline, end. `executed_job` fills it from a TrainJob and its runtime; kind, names, hosts and
variables stay the TrainJob's own. A job of another policy is a gang without MPI: its first node
takes the launcher's place, and it has succeeded when every node has. Interfaces see the TrainJob
itself (`sdk.backends.local.observed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api.effective.combine import (
    DATASET,
    LAUNCHER,
    MODEL,
    NODE,
    TRAINER,
    Effective,
    ReplicatedJob,
    effective,
)
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds import mpijob, runtime, trainjob
from mpi_trainer.api.kinds.annotations import TTL
from mpi_trainer.api.kinds.mpijob import MPIJob, ReplicaSpec, RunPolicy
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.runtime import FLUX, MPI, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.layout import policies
from mpi_trainer.layout.agent.choice import Choice, container
from mpi_trainer.layout.model import Layout, Pairs, PodLayout
from mpi_trainer.layout.trainjob import hostnames
from mpi_trainer.layout.trainjob import layout as layout_of
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import applied_fields
from mpi_trainer.local.execute.settings import SubmittedTrainJob
from mpi_trainer.local.jobs import shipped_runtimes

replace = msgspec.structs.replace


def kept(job: TrainJob, given: Runtime) -> SubmittedTrainJob:
    """Both, for as long as the job is there: a runtime that is edited later is another (CTL-13)."""
    return SubmittedTrainJob(trainjob.to_wire(job), runtime.to_wire(given))


def values(train: SubmittedTrainJob) -> tuple[TrainJob, Runtime]:
    return decode(TrainJob, train.job).value, decode(Runtime, train.runtime).value


def executed_job(job: TrainJob, given: Runtime) -> MPIJob:
    """With the TrainJob's kind, pods, suspension, deadline and attempts."""
    merged = arranged(job, given)
    first, others = _roles(merged)
    notes = {**given.metadata.annotations, **job.metadata.annotations}
    ttl = notes.get(TTL, "")
    return MPIJob(
        kind=trainjob.KIND,
        metadata=job.metadata,
        spec=mpijob.MPIJobSpec(
            slots_per_worker=max(merged.slots, 1),
            run_launcher_as_worker=merged.policy != MPI or merged.run_launcher_as_node,
            mpi_implementation=merged.mpi_implementation,
            run_policy=RunPolicy(
                clean_pod_policy="Running",
                backoff_limit=_backoff_limit(first),
                active_deadline_seconds=job.spec.active_deadline_seconds,
                ttl_seconds_after_finished=int(ttl) if ttl.isdecimal() else None,
                suspend=job.spec.suspend,
            ),
            mpi_replica_specs={
                mpijob.LAUNCHER: _replica(first, 1),
                mpijob.WORKER: _replica(others, _others(merged)),
            },
        ),
    )


def layout(train: SubmittedTrainJob, chosen: Choice, implementation: str) -> Layout:
    """What it needs in order to run here, with the MPI that was chosen for it."""
    job, given = values(train)
    merged = replace(arranged(job, given), mpi_implementation=implementation)
    if merged.policy != MPI:
        return _gang(job, merged)
    return layout_of(job, merged, chosen=chosen)


def writers(train: SubmittedTrainJob, worker: int | None) -> tuple[str, ...]:
    """The pods whose lines are the job's: the launcher's, or every node's where there is no MPI;
    or one worker's own."""
    job, given = values(train)
    merged = arranged(job, given)
    first, others = (tuple(hostnames(job, one)) for one in _roles(merged))
    if worker is not None:
        return others[worker : worker + 1]
    return first


def pods(train: SubmittedTrainJob) -> tuple[str, ...]:
    """The names of all pods, the launcher's or the first node's first."""
    job, given = values(train)
    roles = _roles(arranged(job, given))
    return tuple(dict.fromkeys(name for one in roles for name in hostnames(job, one)))


def not_applied(train: SubmittedTrainJob) -> list[str]:
    """The fields of its pods that do nothing here; under a shipped runtime, the job's own only."""
    job, given = values(train)
    found = _not_applied(job, given)
    known = shipped_runtimes.runtime(given.name)
    if known is None or known.spec != given.spec:
        return found
    bare = replace(job, spec=replace(job.spec, trainer=None, runtime_patches=()))
    ours = _not_applied(bare, given)
    return [path for path in found if path not in ours]


def _not_applied(job: TrainJob, given: Runtime) -> list[str]:
    return [
        f"{one.name}.{path}"
        for one in effective(job, given).jobs
        if one.role not in (DATASET, MODEL)
        for path in applied_fields.not_applied(
            _node_first(one).template, "worker" if one.role == NODE else "launcher"
        )
    ]


def _gang(job: TrainJob, merged: Effective) -> Layout:
    one, _ = _roles(merged)
    main = container(one.template.view.spec.containers)
    pods = tuple(
        PodLayout(
            name=name,
            role="worker" if index else "launcher",
            index=max(index - 1, 0),
            hostname=name,
            subdomain=merged.subdomain,
            labels={},
            env=_gang_env(job, merged, index),
            command=(*main.command, *main.args),
            files=(),
            keys=(),
            template=one.template,
        )
        for index, name in enumerate(hostnames(job, one))
    )
    return Layout(
        name=job.name,
        namespace=job.namespace,
        implementation=merged.mpi_implementation,
        slots=max(merged.slots, 1),
        hosts=(),
        hostfile="",
        launcher=pods[0],
        workers=pods[1:],
    )


def _gang_env(job: TrainJob, merged: Effective, index: int) -> Pairs:
    """What an indexed Job gives its pods, and its policy; the index is the only one by field."""
    ours = policies.variables(job, merged)
    named = tuple((one["name"], one.get("value", str(index))) for one in ours)
    return (("JOB_COMPLETION_INDEX", str(index)), *named)


def arranged(job: TrainJob, given: Runtime) -> Effective:
    """The job as it runs here, with the container that runs it first in its pods.

    Raises LocalError for what only a cluster can do.
    """
    if given.policy == FLUX:
        raise LocalError(
            f"runtime {given.name} is for flux, which comes in an image and is not run here",
            "Use a runtime with the policy mpi.",
        )
    merged = effective(job, given)
    wanted = {LAUNCHER, NODE} if merged.policy == MPI else {TRAINER}
    alien = [one.name for one in merged.jobs if one.role not in wanted | {DATASET, MODEL}]
    if alien:
        raise LocalError(
            f"runtime {given.name} has the job {alien[0]}, which is none of the job's nodes: that "
            "is not done here",
            "Use a runtime without it (`--runtime FILE`).",
        )
    missing = wanted - {one.role for one in merged.jobs}
    if missing:
        raise LocalError(
            f"runtime {given.name} has no job {' and no job '.join(sorted(missing))}",
            "Add it to its replicatedJobs.",
        )
    merged = replace(merged, jobs=tuple(_node_first(one) for one in merged.jobs))
    first, _ = _roles(merged)
    main = container(first.template.view.spec.containers)
    if not (main.command or main.args):
        raise LocalError(
            f"job {job.name} names no command, and the image, which may have one, is not used here",
            "Set spec.trainer.command.",
        )
    return merged


def _roles(merged: Effective) -> tuple[ReplicatedJob, ReplicatedJob]:
    names = (LAUNCHER, NODE) if merged.policy == MPI else (TRAINER, TRAINER)
    first, others = (merged.job(name) for name in names)
    assert first is not None and others is not None, "arranged has looked"
    return first, others


def _others(merged: Effective) -> int:
    _, others = _roles(merged)
    return others.count if merged.policy == MPI else others.count - 1


def _replica(one: ReplicatedJob, count: int) -> ReplicaSpec:
    return ReplicaSpec(replicas=count, template=one.template, restart_policy="Never")


def _backoff_limit(one: ReplicatedJob) -> int:
    """As a Job has it: six attempts where nothing is said."""
    job: Mapping[str, Any] = one.rest.get("template") or {}
    limit = (job.get("spec") or {}).get("backoffLimit")
    return limit if isinstance(limit, int) else 6


def _node_first(one: ReplicatedJob) -> ReplicatedJob:
    content = one.template.content
    pod = content.get("spec") or {}
    given = sorted(pod.get("containers") or (), key=lambda c: c.get("name") != NODE_CONTAINER)
    return replace(one, template=PodTemplate.of({**content, "spec": {**pod, "containers": given}}))
