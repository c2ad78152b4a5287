"""The Backend of this machine, over `local.jobs.store`.

Files are the truth: every call reads them afresh, so any number of clients in any number of
processes see the same. Following means looking often; a look at a quiet job costs one `stat`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.annotations import RESTARTS, whole_number
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import RuntimeRef, TrainJob
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute.settings import LocalSettings, current_settings
from mpi_trainer.local.jobs import code_folders, store
from mpi_trainer.local.jobs.jobdir import JobDir, JobState, PodState
from mpi_trainer.local.pods import access
from mpi_trainer.sdk.backends import permissions
from mpi_trainer.sdk.backends.backend import (
    ALL_JOBS,
    Backend,
    EventInfo,
    JobChange,
    JobDetails,
    JobPage,
    JobQuery,
    JobSummary,
    JobView,
    Key,
    LogLine,
    LogQuery,
    PodInfo,
    Project,
    QueueInfo,
    QuotaInfo,
)
from mpi_trainer.sdk.backends.job_facts import unversioned
from mpi_trainer.sdk.backends.local import choices, job_logs
from mpi_trainer.sdk.backends.local.live import LocalLive
from mpi_trainer.sdk.backends.local.observed import (
    chosen,
    find,
    job_not_found,
    local_errors,
    pod_info,
    rank_infos,
    readable,
    summaries,
    view,
)
from mpi_trainer.sdk.backends.local.submission import submitted, submitted_with_code
from mpi_trainer.sdk.backends.permissions import Permission
from mpi_trainer.sdk.backends.usage import JobUsage, between
from mpi_trainer.sdk.backends.views import details_summary
from mpi_trainer.sdk.errors import (
    JobChanged,
    JobError,
    JobNotFound,
    RuntimeNotFound,
)

if TYPE_CHECKING:
    from mpi_trainer.api.yaml.load import JobFile
    from mpi_trainer.local.execute.prepare import LocalRun
    from mpi_trainer.plan.comparison import Difference
    from mpi_trainer.sdk.code.bundle import Bundle

replace = msgspec.structs.replace

LOOK_SECONDS = 0.05
LIST_SECONDS = 0.5
USAGE_SECONDS = 0.5


class LocalBackend:
    """Jobs of this machine, of one `kind` where it is given. `settings` None takes the caller's at
    every submission."""

    def __init__(self, settings: LocalSettings | None = None, kind: str = "") -> None:
        self._settings = settings
        self._kind = kind

    @property
    def name(self) -> str:
        return "local"

    @property
    def namespace(self) -> str:
        return "default"

    @property
    def live(self) -> LocalLive:
        return LocalLive(self.details_now, self._kind)

    def of_kind(self, kind: str) -> LocalBackend:
        return LocalBackend(self._settings, kind)

    async def create(self, job: MPIJob, workdir: str = "") -> JobView:
        return await asyncio.to_thread(self.create_now, job, workdir)

    async def create_trainjob(self, job: TrainJob, runtime: Runtime | None = None) -> JobView:
        """`runtime` is for a job that brings its own."""
        from mpi_trainer.local.execute.prepare import prepare_train

        settings = self._settings or current_settings()
        chosen = runtime or await self.runtime(job.spec.runtime_ref, job.namespace)
        return await asyncio.to_thread(submitted, lambda: prepare_train(job, chosen, settings))

    def create_now(self, job: MPIJob, workdir: str = "") -> JobView:
        from mpi_trainer.local.execute.prepare import prepare

        settings = self._settings or current_settings()
        if workdir:
            settings = replace(settings, cwd=str(Path(workdir).resolve()))
        return submitted(lambda: prepare(job, settings))

    async def create_with_code(self, job: MPIJob, packed: Bundle) -> JobView:
        settings = self._settings or current_settings()
        return await asyncio.to_thread(submitted_with_code, job, settings, packed.data)

    async def copy(self, job: MPIJob, original: Key) -> JobView:
        """It runs as the original did: in its directory, with its MPI and its materials. Code that
        came with the original is unpacked again."""
        with readable(original):
            settings = find(original).settings()
        if not settings.code:
            return await LocalBackend(settings).create(job)
        with local_errors():
            packed = await asyncio.to_thread(code_folders.packed, settings.code)
        return await asyncio.to_thread(submitted_with_code, job, settings, packed)

    async def get(self, key: Key) -> JobView:
        return self.get_now(key)

    def get_now(self, key: Key) -> JobView:
        return view(self._find(key), key)

    def _find(self, key: Key) -> JobDir:
        folder = find(key)
        if self._kind and view(folder, key).kind != self._kind:
            raise job_not_found(key)
        return folder

    async def details(self, key: Key) -> JobDetails:
        return await asyncio.to_thread(self.details_now, key)

    def details_now(self, key: Key) -> JobDetails:
        folder = self._find(key)
        with readable(key):
            state, events = folder.state(), folder.events()
        return JobDetails(
            job=view(folder, key),
            pods=tuple(pod_info(p) for p in state.pods),
            ranks=tuple(rank_infos(state)),
            events=tuple(EventInfo(e.time, e.type, e.reason, e.message) for e in events),
            progress=state.progress,
            waits_for=state.waits_for,
            attempts=state.attempts,
            missing=state.missing.words(),
        )

    async def usage(
        self, keys: Sequence[Key], gpu_metrics: Sequence[str] | None = None
    ) -> dict[Key, JobUsage]:
        first = {key: pods for key in keys if (pods := await self._pods(key)) is not None}
        if any(pod.cpu_seconds is not None for pods in first.values() for pod in pods):
            await asyncio.sleep(USAGE_SECONDS)
        return {
            key: between(key, pods, await self._pods(key) or (), USAGE_SECONDS, self.name)
            for key, pods in first.items()
        }

    async def cpus_in_use(self, namespace: str | None = None) -> float | None:
        found = await self.list(namespace)
        used = await self.usage([job.key for job in found if job.state == conditions.RUNNING])
        return sum(pod.cpus or 0.0 for job in used.values() for pod in job.pods)

    async def _pods(self, key: Key) -> tuple[PodInfo, ...] | None:
        """None where the job is not there."""
        try:
            return (await self.details(key)).pods
        except JobNotFound:
            return None

    async def summary(self, key: Key) -> JobSummary:
        return details_summary(self.details_now(key))

    async def list(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        return await asyncio.to_thread(self.list_now, namespace, query)

    def list_now(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        with local_errors():
            found = [*summaries(namespace)]
        if query.labels or query.manifests:
            found = list(chosen(found, query))
        if self._kind:
            found = [job for job in found if job.kind == self._kind]
        return sorted(found, key=lambda job: job.created, reverse=True)

    async def list_page(
        self, namespace: str | None = None, limit: int = 500, token: str = ""
    ) -> JobPage:
        found = sorted(self.list_now(namespace), key=_place)
        later = [job for job in found if not token or _place(job) > tuple(token.split("/"))]
        jobs = tuple(later[:limit])
        return JobPage(jobs, "/".join(_place(jobs[-1])) if len(later) > limit else "")

    async def watch_jobs(self, namespace: str | None = None) -> AsyncGenerator[JobChange, None]:
        known: dict[Key, JobSummary] = {}
        while True:
            now = {job.key: job for job in await asyncio.to_thread(self.list_now, namespace)}
            for key in known.keys() - now.keys():
                yield JobChange(known[key], deleted=True)
            for key, job in now.items():
                if key not in known or unversioned(known[key]) != unversioned(job):
                    yield JobChange(job)
            known = now
            await asyncio.sleep(LIST_SECONDS)

    async def watch(self, key: Key) -> AsyncGenerator[JobView, None]:
        last: MPIJobStatus | None = None
        while True:
            try:
                folder = self._find(key)
                with readable(key):
                    status = folder.state().status
                if status != last:
                    yield view(folder, key)
            except JobNotFound:
                if last is None:
                    raise
                return
            last = status
            if conditions.finished(status.conditions):
                return
            await asyncio.sleep(LOOK_SECONDS)

    def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        if self._kind:
            self._find(key)
        return job_logs.lines(key, query)

    async def suspend(self, key: Key, seen: JobView | None = None) -> JobView:
        return self._suspend(key, True, seen)

    async def resume(self, key: Key, seen: JobView | None = None) -> JobView:
        return self._suspend(key, False, seen)

    def _suspend(self, key: Key, wanted: bool, seen: JobView | None) -> JobView:
        folder = self._find(key)
        if view(folder, key).finished:
            verb = "suspended" if wanted else "resumed"
            raise JobError(
                f"job {key} has ended and cannot be {verb}",
                f"Run it again: `odh mpijob restart {key.typed}`.",
            )

        def change(job: MPIJob) -> MPIJob:
            _check_seen(folder, key, seen)
            return _with_suspend(job, wanted)

        with readable(key):
            store.edit(folder, change)
        return view(folder, key)

    async def restart(self, key: Key, seen: JobView | None = None) -> JobView:
        if not self.get_now(key).finished:
            await self.suspend(key, seen)
            seen = None
            if await self._empty(key):
                return await self.resume(key)
        folder = self._find(key)
        _check_seen(folder, key, seen)
        with readable(key):
            await asyncio.to_thread(store.restart, folder, _again)
        return view(folder, key)

    async def _empty(self, key: Key) -> bool:
        """Whether a suspended job gave up its pods; False where it came to its end before."""
        while True:
            job = self.get_now(key)
            if job.finished:
                return False
            if not job.suspend:
                return True  # somebody else restarted it, and it runs again
            with readable(key):
                held = self._find(key).state().pods
            if conditions.holds(job.conditions, conditions.SUSPENDED) and not held:
                return True
            await asyncio.sleep(LOOK_SECONDS)

    async def delete(self, key: Key, seen: JobView | None = None) -> None:
        folder = self._find(key)
        _check_seen(folder, key, seen)
        await asyncio.to_thread(store.remove, folder)

    async def refusals(self, job: MPIJob | TrainJob) -> Sequence[str]:
        try:
            run = await _prepared(self, job, self._settings or current_settings())
            await asyncio.to_thread(run.run_plan)
        except InvalidJob as error:
            return tuple(map(str, error.errors))
        except (LocalError, RuntimeNotFound) as error:
            return (f"{error.problem}; {error.hint}" if error.hint else error.problem,)
        return ()

    async def differences(self, file: JobFile, namespace: str) -> Sequence[Difference]:
        raise JobError(
            "there is no cluster to compare with: jobs run on this machine",
            "Choose a cluster with KUBECONFIG, --kubeconfig or --context.",
        )

    async def user(self) -> str:
        """The account that this process runs under."""
        from getpass import getuser

        return getuser()

    async def run_in(self, key: Key, pod: str, command: Sequence[str]) -> int:
        folder = self._find(key)
        entered = _running_pod(folder, key, pod)
        with readable(key):
            replica = folder.job().launcher if entered.role == "launcher" else folder.job().worker
            cwd = folder.settings().cwd
        containers = replica.template.view.spec.containers
        directory = (containers[0].working_dir if containers else "") or cwd
        return await asyncio.to_thread(access.run_in, entered, command, directory)

    async def fetch(self, key: Key, path: str, destination: str) -> None:
        await asyncio.to_thread(self._fetch, key, path, Path(destination))

    def _fetch(self, key: Key, path: str, destination: Path) -> None:
        folder = self._find(key)
        with readable(key):
            job, settings, pods = folder.job(), folder.settings(), folder.state().pods
        if not path.startswith("/"):
            path = f"{settings.cwd}/{path}"
        launcher = [p for p in pods if p.role == "launcher" and p.phase == "Running"]
        if launcher:
            access.copy_out(launcher[0], path, destination)
        else:
            access.copy(_kept(job, settings, path), path, destination)

    async def rank_pods(self, key: Key) -> dict[int, str]:
        return {one.rank: one.pod for one in (await self.details(key)).ranks}

    async def stacks(self, key: Key) -> dict[int, str]:
        folder = self._find(key)
        with readable(key):
            pods = folder.state().pods
        return await asyncio.to_thread(access.stacks, pods)

    async def runtimes(self, namespace: str) -> Sequence[Runtime]:
        """Those that we ship, whatever the namespace."""
        return choices.runtimes()

    async def runtime(self, ref: RuntimeRef, namespace: str) -> Runtime:
        return choices.runtime(ref)

    async def projects(self) -> Sequence[Project]:
        return [Project(name) for name in await self.namespaces()]

    async def permissions(self, namespace: str) -> Sequence[Permission]:
        return permissions.everything()

    async def namespaces(self) -> Sequence[str]:
        with local_errors():
            return sorted({self.namespace, *(folder.namespace for folder in store.folders())})

    async def enforces_restricted(self, namespace: str) -> bool:
        return False

    async def volume(self, name: str, namespace: str) -> Mapping[str, Any]:
        settings = self._settings or current_settings()
        return choices.volume(name, namespace, settings.claims)

    async def queues(self, namespace: str) -> Sequence[QueueInfo]:
        """None: jobs of this machine wait for its CPUs and memory, in the order of their coming."""
        return ()

    async def quotas(self, namespace: str) -> Sequence[QuotaInfo]:
        return ()

    async def prune(self, namespace: str | None, older_than_seconds: float) -> Sequence[Key]:
        gone = []
        with local_errors():
            await asyncio.to_thread(store.clear_leftovers)
            found = [*store.states(namespace)]
        for folder, state in found:
            ended = state.status.completion_time if isinstance(state, JobState) else None
            if ended and (datetime.now(UTC) - ended).total_seconds() >= older_than_seconds:
                await asyncio.to_thread(store.remove, folder)
                gone.append(Key(folder.namespace, folder.name))
        return gone


def _place(job: JobSummary) -> tuple[str, ...]:
    return job.key.namespace, job.key.name


def _check_seen(folder: JobDir, key: Key, seen: JobView | None) -> None:
    if seen is not None and view(folder, key).manifest != seen.manifest:
        raise JobChanged(
            f"job {key} has changed since it was read",
            "Read it again, and repeat what you asked for.",
        )


async def _prepared(backend: Backend, job: MPIJob | TrainJob, settings: LocalSettings) -> LocalRun:
    """The job as it would run; raises what speaks against it."""
    from mpi_trainer.local.execute.prepare import prepare, prepare_train

    if isinstance(job, MPIJob):
        return await asyncio.to_thread(prepare, job, settings)
    runtime = await backend.runtime(job.spec.runtime_ref, job.namespace)
    return await asyncio.to_thread(prepare_train, job, runtime, settings)


def _running_pod(folder: JobDir, key: Key, name: str) -> PodState:
    with readable(key):
        pods = folder.state().pods
    for pod in pods:
        if pod.name == name and pod.pid and pod.phase == "Running":
            return pod
    running = ", ".join(p.name for p in pods if p.phase == "Running") or "none"
    raise JobError(f"pod {name} is not running", f"Running pods: {running}.")


def _kept(job: MPIJob, settings: LocalSettings, path: str) -> Path:
    """Where a file of an ended job is: what it wrote to volumes and shared directories."""
    for replica in (job.launcher, job.worker):
        spec = replica.template.view.spec
        sources = {
            v.name: v.host_path.path
            if v.host_path
            else settings.claims.get(v.persistent_volume_claim.claim_name)
            if v.persistent_volume_claim
            else None
            for v in spec.volumes
        }
        for mount in (m for c in spec.containers[:1] for m in c.volume_mounts):
            inner = Path(path)
            if inner.is_relative_to(mount.mount_path):
                source = sources.get(mount.name)
                if source is None:
                    break
                return Path(source, mount.sub_path, inner.relative_to(mount.mount_path))
    own = path.startswith(("/tmp/", "/run/", "/dev/")) and not path.startswith(f"{settings.cwd}/")
    if Path(path).exists() and not own:
        return Path(path)
    if not own:
        raise LocalError(f"no file {path}", f"See what is there: `ls {Path(path).parent}`.")
    raise LocalError(
        f"{path} was on the pod's own disk, which is gone with it",
        "Let the job write to a volume or to its working directory, or copy while it runs.",
    )


def _with_suspend(job: MPIJob, wanted: bool) -> MPIJob:
    policy = replace(job.spec.run_policy, suspend=wanted)
    return replace(job, spec=replace(job.spec, run_policy=policy))


def _again(job: MPIJob) -> MPIJob:
    notes = dict(job.metadata.annotations)
    notes[RESTARTS] = str(1 + whole_number(notes.get(RESTARTS, ""), 0))
    return replace(job, metadata=replace(job.metadata, annotations=notes, deletion_timestamp=None))
