"""A check before a job runs: what reading shows, then a smoke run where that found nothing wrong.

Guarantee: the job of a smoke run is removed however the check ends, also by an interrupt; one whose
caller was killed ends by its deadline and goes by its time to live.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

import msgspec

from mpi_trainer.api.errors import SUSPICIOUS, FieldError, line
from mpi_trainer.api.kinds import conditions, mpijob, runtime, trainjob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import MPI, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.check import lint, smoke
from mpi_trainer.check.report import HOSTS, CheckReport, measured
from mpi_trainer.diagnose.finding import Finding
from mpi_trainer.sdk.backends.backend import Backend, JobDetails, JobView, Key, LogQuery
from mpi_trainer.sdk.errors import JobNotFound, JobTimeout
from mpi_trainer.sdk.job.events import until_finished
from mpi_trainer.sdk.job.explain import explained

TIMEOUT: Final = 300.0
_MARGIN: Final = 30
"""seconds by which the job's own deadline is later than its caller's patience"""
_REMOVAL: Final = 60.0
"""seconds for the job to go: its pods may take hours, or never end"""
_ROOT: Final = "its containers run as root: Open MPI needs `mpirun --allow-run-as-root` there"
_LINES: Final = 10_000


class Target(msgspec.Struct, frozen=True):
    """What is checked, with its runtime where it is not an MPIJob. `brought`: the runtime is not
    where the job would run, so its pods are tried as an MPIJob's. `filled`: whoever creates the
    job adds what its namespace demands of every container."""

    value: MPIJob | TrainJob | Runtime
    runtime: Runtime | None = None
    brought: bool = False
    filled: bool = False

    @property
    def trainjob(self) -> TrainJob:
        """The job, or one that only names the runtime."""
        value = self.value
        return value if isinstance(value, TrainJob) else smoke.job_of(self._runtime, "")

    @property
    def _runtime(self) -> Runtime:
        assert self.runtime is not None, "a TrainJob comes with its runtime"
        return self.runtime

    def found(self, *, restricted: bool) -> tuple[FieldError, ...]:
        """What reading shows; `restricted` is as for `check.lint`."""
        from mpi_trainer.api.validation import compatibility
        from mpi_trainer.api.yaml import load

        value = self.value
        if isinstance(value, MPIJob):
            one = load.job(mpijob.to_wire(value))
            more = (
                ()
                if one.errors
                else lint.mpijob_lint(value, restricted=restricted and not self.filled)
            )
        elif isinstance(value, TrainJob):
            one = load.train_job(trainjob.to_wire(value))
            given = self._runtime
            more = one.errors or compatibility.errors(value, given)
            if not more:
                more = (
                    *compatibility.warnings(value, given),
                    *lint.trainjob_lint(value, given, restricted=restricted),
                )
        else:
            one = load.runtime(runtime.to_wire(value))
            more = () if one.errors else lint.runtime_lint(value, restricted=restricted)
        return tuple(dict.fromkeys((*one.errors, *one.warnings, *more)))

    def unrun(self) -> str:
        """Why there is no smoke run; empty where there is one."""
        if isinstance(self.value, MPIJob):
            return "" if self.value.workers else "the job has no workers, so nothing joins two pods"
        policy = self._runtime.policy
        return "" if policy == MPI else f"ranks are started by {policy}, and it tries MPI"

    def smoke_job(self, namespace: str, suffix: str, seconds: int) -> MPIJob | TrainJob:
        name = smoke.smoke_name(self.value.name or "job", suffix)
        if isinstance(self.value, MPIJob):
            return _placed(smoke.smoke_mpijob(self.value, name, seconds), namespace)
        job = self.trainjob
        if not self.brought:
            return _placed(smoke.smoke_trainjob(job, self._runtime, name, seconds), namespace)
        made = smoke.as_mpijob(job, self._runtime)
        free = not job.trainer.command
        return _placed(smoke.smoke_mpijob(made, name, seconds, allow_root=free), namespace)


def _placed(job: MPIJob | TrainJob, namespace: str) -> MPIJob | TrainJob:
    meta = msgspec.structs.replace(job.metadata, namespace=namespace)
    return msgspec.structs.replace(job, metadata=meta)


async def check(
    backend: Backend,
    target: Target,
    namespace: str,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - the word that users know
    smoke_run: bool = True,
) -> CheckReport:
    """What reading shows, and what a smoke run in this namespace does."""
    import asyncio

    value, restricted = target.value, await backend.enforces_restricted(namespace)
    # Beside the event loop, which a server's other callers wait for.
    found = await asyncio.to_thread(lambda: target.found(restricted=restricted))
    report = CheckReport(
        name=value.name or "without a name",
        kind=value.kind,
        errors=tuple(line(one) for one in found if one.problem != SUSPICIOUS),
        warnings=tuple(line(one) for one in found if one.problem == SUSPICIOUS),
        unrun=target.unrun() if smoke_run else "as asked for",
    )
    if report.errors or report.unrun:
        return report
    suffix = os.urandom(3).hex()
    job = target.smoke_job(namespace, suffix, int(timeout) + _MARGIN)
    return await _run(backend, job, report, timeout)


async def _run(
    backend: Backend, job: MPIJob | TrainJob, report: CheckReport, seconds: float
) -> CheckReport:
    import asyncio

    key = Key(job.namespace, job.name)
    began = time.monotonic()
    creating = asyncio.ensure_future(_created(backend, job))
    try:
        await asyncio.shield(creating)
        ended, problem = True, ""
        try:
            state = await until_finished(backend, key, seconds, None)
            if state.state == conditions.FAILED:
                problem = f"the job failed: {state.message}"
        except JobTimeout:
            ended = False
        details = await backend.details(key)
        if not ended:
            waits = f": {details.waits_for}" if details.waits_for else ""
            problem = f"it has not ended within {seconds:g} s{waits}"
        lines = await _lines(backend, key)
        findings: tuple[Finding, ...] = await explained(backend, key) if problem else ()
    finally:
        with suppress(Exception):
            await creating
        left = await _removed(backend, key)
    result = measured(lines, ended=ended)
    return msgspec.structs.replace(
        report,
        steps=result.steps,
        problem=problem,
        warnings=(*report.warnings, *((_ROOT,) if result.root else ()), *left),
        nodes=_nodes(details),
        latency=result.latency,
        bandwidth=result.bandwidth,
        findings=findings,
        seconds=round(time.monotonic() - began, 1),
    )


async def _removed(backend: Backend, key: Key) -> tuple[str, ...]:
    """Why the job is still there; it must hide neither what was found nor why there is no job."""
    import asyncio

    try:
        async with asyncio.timeout(_REMOVAL):
            await backend.delete(key)
    except JobNotFound:
        return ()
    except TimeoutError:
        return (
            f"job {key.name} is being removed: its pods take longer than {_REMOVAL:g} s to end",
        )
    except Exception as error:
        kept = f"it goes {smoke.KEPT_SECONDS // 60} min after its end"
        return (f"job {key.name} was not removed ({error}); {kept}",)
    return ()


async def _created(backend: Backend, job: MPIJob | TrainJob) -> JobView:
    if isinstance(job, MPIJob):
        return await backend.create(job)
    return await backend.create_trainjob(job)


async def _lines(backend: Backend, key: Key) -> list[str]:
    """What the launcher wrote, its last lines where it wrote many."""
    return [one.text async for one in backend.logs(key, LogQuery(tail=_LINES))]


def _nodes(details: JobDetails) -> tuple[str, ...]:
    """Those of the pods that ran ranks."""
    workers = [pod for pod in details.pods if pod.role == "worker"]
    pods = workers if len(workers) >= HOSTS else details.pods
    return tuple(pod.node for pod in pods if pod.node)
