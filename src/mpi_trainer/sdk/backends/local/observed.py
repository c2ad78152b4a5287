"""Jobs of this machine found by name and read from their directories, as the values of the Backend
protocol and with the errors of `sdk/errors.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from getpass import getuser
from typing import Any

import msgspec

from mpi_trainer.api import label_selector
from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute.settings import SubmittedTrainJob
from mpi_trainer.local.jobs import store
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir, JobState, PodState
from mpi_trainer.local.paths import jobs_dir
from mpi_trainer.local.pods import access
from mpi_trainer.sdk.backends.backend import JobQuery, JobSummary, JobView, Key, PodInfo, RankInfo
from mpi_trainer.sdk.backends.views import mpijob_view, rank_info
from mpi_trainer.sdk.errors import JobError, JobNotFound

DAMAGED = "JobDirectoryDamaged"


@contextmanager
def local_errors() -> Iterator[None]:
    """Errors of `local` inside the block become ours."""
    try:
        yield
    except LocalError as error:
        raise JobError(error.problem, error.hint) from error


@contextmanager
def readable(key: Key) -> Iterator[None]:
    """The job's directory may vanish at any moment, and may have been damaged by hand."""
    try:
        yield
    except FileNotFoundError as error:
        raise JobNotFound(f"job {key} was deleted just now") from error
    except Damaged as damage:
        raise JobError(
            f"the directory of job {key} is damaged: {damage}",
            f"Remove it: `odh mpijob delete {key.typed}`.",
        ) from damage


def find(key: Key) -> JobDir:
    try:
        with local_errors():
            return store.find(key.namespace, key.name)
    except store.NoSuchJob as error:
        raise job_not_found(key) from error


def job_not_found(key: Key) -> JobNotFound:
    return JobNotFound(
        f"job {key} not found on this machine", "List jobs with `odh mpijob list -A`."
    )


def view(folder: JobDir, key: Key) -> JobView:
    with readable(key):
        return job_view(folder.job(), folder.settings().train)


def job_view(job: MPIJob, train: SubmittedTrainJob | None) -> JobView:
    """`job` is what the executor runs; `train` the TrainJob that it was made from, if it was."""
    if train is None:
        return mpijob_view(job, to_wire(job))
    from mpi_trainer.local.jobs import trainjob_status  # runtimes and policies: few jobs need them

    return mpijob_view(job, trainjob_status.wire(train, job))


def summaries(namespace: str | None) -> Iterator[JobSummary]:
    """Of every job that is there."""
    owner = getuser()
    for folder, state in store.states(namespace):
        try:
            yield _summary(folder, state, owner)
        except FileNotFoundError:
            continue  # deleted just now
        except Damaged as damage:
            yield _summary(folder, damage, owner)


def _summary(folder: JobDir, state: JobState | Damaged, owner: str) -> JobSummary:
    key = Key(folder.namespace, folder.name)
    if isinstance(state, Damaged):
        made = datetime.fromtimestamp(0, UTC)
        with suppress(FileNotFoundError):
            made = datetime.fromtimestamp(folder.path.stat().st_mtime, UTC)
        return JobSummary(key, conditions.FAILED, made, DAMAGED, str(state), owner=owner)
    found = state.status.conditions
    current = conditions.find(found, conditions.state(found))
    return JobSummary(
        key=key,
        state=conditions.state(found),
        created=state.created,
        reason=current.reason if current else "",
        message=state.waits_for or (current.message if current else ""),
        started=state.status.start_time,
        completed=state.status.completion_time,
        workers=state.workers,
        slots=state.slots,
        implementation=state.implementation,
        progress=state.progress,
        kind=state.kind,
        uid=state.uid,
        resource_version=folder.version(),
        gpus=state.gpus,
        queue=state.queue,
        runtime=state.runtime,
        owner=owner,
        suspend=not conditions.finished(found) and folder.asks_suspension(),
        waits_for=state.waits_for,
    )


def chosen(jobs: Iterable[JobSummary], query: JobQuery) -> Iterator[JobSummary]:
    """Those that have the labels, with their manifests where these are wanted. A directory that
    is damaged or gone has neither."""
    selector = _selector(query.labels)
    for job in jobs:
        manifest: Mapping[str, Any] = {}
        with suppress(JobError):
            manifest = view(JobDir(jobs_dir() / job.key.namespace / job.key.name), job.key).manifest
        labels = (manifest.get("metadata") or {}).get("labels") or {}
        if selector.matches(labels):
            yield msgspec.structs.replace(job, manifest=manifest) if query.manifests else job


def _selector(text: str) -> label_selector.Selector:
    try:
        return label_selector.parse(text)
    except label_selector.BadSelector as error:
        raise JobError(f"invalid label selector: {error}") from error


def pod_info(pod: PodState) -> PodInfo:
    cpu, memory = access.usage(pod) if pod.pid and pod.phase == "Running" else (None, None)
    return PodInfo(
        name=pod.name,
        role="launcher" if pod.role == "launcher" else "worker",
        index=pod.index,
        phase=pod.phase,
        ready=pod.ready,
        address=pod.address,
        pid=pod.pid,
        cpu_seconds=cpu,
        memory_bytes=memory,
        end=pod.end,
        exit_code=pod.exit_code,
        signal=pod.signal,
        reason=pod.reason,
    )


def rank_infos(state: JobState) -> Iterator[RankInfo]:
    if conditions.finished(state.status.conditions) or not state.pods:
        for r in state.ranks:
            values = r.exit_code, r.signal, r.reason
            yield RankInfo(r.rank, r.pod, r.address, 0, r.end, *values)
        return
    addresses = {p.name: p.address for p in state.pods}
    for rank in access.pod_ranks(state.pods):
        yield rank_info(rank, addresses.get(rank.pod, ""))
