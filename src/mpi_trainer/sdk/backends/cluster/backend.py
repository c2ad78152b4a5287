"""Jobs on a cluster, with the caller's own rights and nothing else.

Everything goes through the public API, so it works wherever MPIJobs are served, whichever
controller serves them. Waiting is one watch, however many wait. What the API server refuses is
told as the errors of `sdk/errors.py`; one that is away for a while is waited for.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.annotations import CODE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.kube import requests
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import Conflict
from mpi_trainer.kube.resources import Resource
from mpi_trainer.sdk.backends import views
from mpi_trainer.sdk.backends.backend import (
    ALL_JOBS,
    JobChange,
    JobDetails,
    JobPage,
    JobQuery,
    JobSummary,
    JobView,
    Key,
    LogLine,
    LogQuery,
)
from mpi_trainer.sdk.backends.cluster import (
    code,
    exec,
    job_changes,
    job_logs,
    lifecycle,
    namespace_limits,
    observed,
    prerequisites,
    usage,
)
from mpi_trainer.sdk.backends.cluster.chosen import ClusterChoices
from mpi_trainer.sdk.backends.cluster.connections import (
    ApiServer,
    Connections,
    OpenClient,
    streaming,
)
from mpi_trainer.sdk.backends.cluster.defaults import IMAGE, for_cluster
from mpi_trainer.sdk.backends.cluster.details import details
from mpi_trainer.sdk.backends.cluster.errors import cluster_errors, job_changed
from mpi_trainer.sdk.backends.cluster.find import FoundJob, find, page, readable, summaries
from mpi_trainer.sdk.backends.cluster.gpu_metrics import VARIABLE
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, MPIJOB, Kind
from mpi_trainer.sdk.backends.cluster.live import ClusterLive
from mpi_trainer.sdk.backends.cluster.outages import Say
from mpi_trainer.sdk.backends.cluster.progress import with_progress
from mpi_trainer.sdk.backends.log_store import LogStore, configured_log_store, stored_lines
from mpi_trainer.sdk.backends.usage import JobUsage
from mpi_trainer.sdk.code.bundle import Bundle, bundle
from mpi_trainer.sdk.errors import JobError

if TYPE_CHECKING:
    from mpi_trainer.api.yaml.load import JobFile
    from mpi_trainer.plan.comparison import Difference

replace = msgspec.structs.replace

VERSION: Final = "resourceVersion"


def _on_stderr(text: str) -> None:
    print(f"mpi-trainer: {text}", file=sys.stderr, flush=True)


class ClusterBackend(ClusterChoices):
    """Jobs of one cluster, of the `kinds` that are meant.

    `say` hears what a person should know while something takes long. With `single_answers` as
    `open_client` nothing can be watched, followed or entered. `patience` is for how many seconds a
    restart goes on that its caller has broken off; to its end where it is None.
    """

    def __init__(
        self,
        config: Config,
        say: Say = _on_stderr,
        kinds: tuple[Kind, ...] = KINDS,
        open_client: OpenClient = streaming,
        log_store: LogStore | None = None,
        *,
        patience: float | None = None,
    ) -> None:
        self.config = config
        self._patience = patience
        self._say = say
        self._log_store = log_store
        self._open_client = open_client
        self._kinds = kinds
        self._of_kind: dict[str, ClusterBackend] = {}
        self._connections = Connections(config, say, kinds, open_client)
        # Other kinds have other owners' habits: theirs are cleared away only where they are named.
        pruned = (MPIJOB,) if kinds == KINDS else kinds
        self._pruned = frozenset(kind.resource.kind for kind in pruned)

    @property
    def name(self) -> str:
        """The API server's address."""
        return self.config.server

    @property
    def live(self) -> ClusterLive:
        return ClusterLive(self._connected, self._kinds)

    def of_kind(self, kind: str) -> ClusterBackend:
        found = self._of_kind.get(kind)
        if found is None:
            kinds = tuple(one for one in KINDS if one.resource.kind == kind)
            given = self.config, self._say, kinds, self._open_client, self._log_store
            found = ClusterBackend(*given, patience=self._patience)
            self._of_kind[kind] = found
        return found

    async def create(self, job: MPIJob, workdir: str = "") -> JobView:
        packed = await asyncio.to_thread(bundle, workdir) if workdir else None
        return await self.create_with_code(job, packed)

    async def create_with_code(self, job: MPIJob, packed: Bundle | None) -> JobView:
        ready = for_cluster(job, os.environ.get(IMAGE, ""), sys.executable)
        async with self._submitting(ready) as (server, key, placed):
            adjusted = await self._adjusted(server, placed)
            if packed is None:
                return await lifecycle.create(server, key, adjusted)
            whole = code.with_code(adjusted, packed)
            return await lifecycle.create_with_code(server, key, whole, code.data(packed))

    async def submit(self, job: MPIJob) -> JobView:
        """Submits the job as it is written: nothing is filled in."""
        async with self._submitting(job) as (server, key, placed):
            return await lifecycle.create(server, key, placed)

    async def create_trainjob(self, job: TrainJob) -> JobView:
        key = Key(job.namespace or self.namespace, job.name)
        async with self._connected(key) as server:
            return await lifecycle.create_trainjob(server, key, job)

    async def attach(self, body: Mapping[str, Any]) -> bool:
        """Makes a ConfigMap or Secret that jobs mount; whether it was not there before."""
        namespace = body["metadata"].get("namespace") or self.namespace
        async with self._connected() as server:
            return await lifecycle.attach(server, namespace, body)

    async def refusals(self, job: MPIJob | TrainJob) -> tuple[str, ...]:
        """What the server would refuse the job for; nothing is made."""
        key = Key(job.namespace or self.namespace, job.name)
        async with self._connected(key) as server:
            if isinstance(job, MPIJob):
                asked = lifecycle.create(server, key, job, dry_run=True)
            else:
                asked = lifecycle.create_trainjob(server, key, job, dry_run=True)
            return await lifecycle.refusals(asked)

    async def tried(
        self, resource: Resource, body: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
        """An object as the server would have it, or what it is refused for; nothing is made."""
        namespace = body["metadata"].get("namespace") or self.namespace
        async with self._connected() as server:
            return await lifecycle.tried(server, resource, namespace, body)

    async def missing(self, job: MPIJob) -> Sequence[str]:
        """What the job names and the cluster does not have, a sentence for each."""
        async with self._submitting(job) as (server, _, placed):
            return await prerequisites.missing(server, placed)

    async def adjusted(self, job: MPIJob) -> namespace_limits.AdjustedJob:
        """The job with what its namespace demands of every container, and notes about that."""
        async with self._submitting(job) as (server, _, placed):
            demands = await lifecycle.demanded(server, placed.namespace)
            return namespace_limits.adjusted(placed, demands)

    async def _adjusted(self, server: ApiServer, job: MPIJob) -> MPIJob:
        """The job with what its namespace demands of every container."""
        found = namespace_limits.adjusted(job, await lifecycle.demanded(server, job.namespace))
        for note in found.notes:
            self._say(note)
        return found.job

    async def copy(self, job: MPIJob, original: Key) -> JobView:
        """Submits a copy; code that was shipped with the original goes with it too."""
        async with self._submitting(job) as (server, key, placed):
            placed = await lifecycle.copy_without_admission(server, placed, original)
            if CODE not in placed.metadata.annotations:
                return await lifecycle.create(server, key, placed)
            shipped = await lifecycle.shipped(server, original, placed.metadata.annotations)
            if not shipped:
                raise JobError(
                    f"the code of job {original} is gone",
                    "Submit it from the folder: `odh mpijob create --workdir`.",
                )
            return await lifecycle.create_with_code(server, key, code.renamed(placed), shipped)

    @asynccontextmanager
    async def _connected(self, key: Key | None = None) -> AsyncIterator[ApiServer]:
        """The API server; what it refuses is an error about the job `key`."""
        with cluster_errors(key):
            async with self._connections.current() as server:
                yield server

    @asynccontextmanager
    async def _submitting(self, job: MPIJob) -> AsyncIterator[tuple[ApiServer, Key, MPIJob]]:
        key = Key(job.namespace or self.namespace, job.name)
        placed = replace(job, metadata=replace(job.metadata, namespace=key.namespace))
        async with self._connected(key) as server:
            yield server, key, placed

    async def get(self, key: Key) -> JobView:
        async with self._connected(key) as server:
            return (await find(server, key)).view

    async def details(self, key: Key) -> JobDetails:
        async with self._connected(key) as server:
            return await details(server, key, await find(server, key))

    async def summary(self, key: Key) -> JobSummary:
        """Of an MPIJob its object and log say enough; other kinds need what is around theirs."""
        async with self._connected(key) as server:
            found = await find(server, key)
            if found.kind is MPIJOB:
                jobs = await with_progress(server, key.namespace, [views.summary(found.view)])
                return jobs[0]
            return views.details_summary(await details(server, key, found))

    async def list(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        async with self._connected() as server:
            found = await summaries(server, namespace or "", query)
            return await with_progress(server, namespace or "", found) if query.progress else found

    async def list_readable(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> tuple[Sequence[JobSummary], tuple[str, ...]]:
        """Jobs as `list` has them, and the kinds of which we may not list any."""
        async with self._connected() as server:
            found, denied = await readable(server, namespace or "", query)
            if query.progress:
                found = await with_progress(server, namespace or "", found)
            return found, denied

    async def list_page(
        self, namespace: str | None = None, limit: int = 500, token: str = ""
    ) -> JobPage:
        async with self._connected() as server:
            return await page(server, namespace or "", limit, token)

    async def watch_jobs(self, namespace: str | None = None) -> AsyncGenerator[JobChange, None]:
        async with (
            self._connected() as server,
            aclosing(job_changes.changes(server, namespace or "")) as changes,
        ):
            async for change in changes:
                yield change

    async def watch(self, key: Key) -> AsyncGenerator[JobView, None]:
        last = None
        async with self._connected(key) as server:
            first = await find(server, key)
            async with aclosing(server.watches.follow(first.kind.resource, key)) as states:
                async for found in states:
                    if found is None or found["metadata"]["uid"] != first.uid:
                        return
                    job = first.kind.view(found)
                    if (stands := (job.conditions, job.counts, job.times)) != last:
                        last = stands
                        yield job
                    if job.finished:
                        return

    async def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        async with self._connected(key) as server:
            job = await find(server, key)
            store = None if query.follow else self._log_store or configured_log_store()
            if store is not None and not await job_logs.speaks(server, key, job, query):
                stored = False
                async with aclosing(stored_lines(store, job.view, query)) as kept:
                    async for line in kept:
                        stored = True
                        yield line
                if stored:
                    return
            async with aclosing(job_logs.lines(server, key, job, query)) as lines:
                async for line in lines:
                    yield line

    async def suspend(self, key: Key, seen: JobView | None = None) -> JobView:
        return await self._suspend(key, True, seen)

    async def resume(self, key: Key, seen: JobView | None = None) -> JobView:
        return await self._suspend(key, False, seen)

    async def _suspend(self, key: Key, wanted: bool, seen: JobView | None) -> JobView:
        async with self._connected(key) as server:
            found = await find(server, key)
            known = _known(found, key, seen)
            kind = found.kind
            if found.finished:
                verb, word = "suspended" if wanted else "resumed", kind.resource.kind.lower()
                raise JobError(
                    f"job {key} has ended and cannot be {verb}",
                    f"Run it again: `odh {word} restart {key.typed}`.",
                )
            change = {"metadata": {"uid": found.uid, **known}, **kind.suspended(wanted)}
            request = requests.patch(kind.resource, key.namespace, key.name, change, "merge")
            try:
                return kind.view(await server.call(request))
            except Conflict as error:
                raise job_changed(key) from error

    async def restart(self, key: Key, seen: JobView | None = None) -> JobView:
        if not (await self.get(key)).finished:
            await self.suspend(key, seen)
            seen = None
            if await self._emptied(key):
                return await self.resume(key)
        async with self._connected(key) as server:
            _known(await find(server, key), key, seen)
            found = await lifecycle.without_admission(server, await find(server, key))
            shipped = await lifecycle.shipped(server, key, found.view.annotations)
            await lifecycle.check_successor(server, found)
            # Whoever is interrupted in the middle must not have lost the job.
            kept = await asyncio.to_thread(lifecycle.save_manifest, lifecycle.successor(key, found))
            work = asyncio.ensure_future(lifecycle.replace_job(server, key, found, shipped, kept))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                self._say(f"recreating {key}; until then it is kept in {kept}")
                try:
                    await lifecycle.ended(server, found, work, kept, self._patience)
                finally:
                    work.cancel()  # who does not wait is told of the file, and it is left to them
                raise

    async def _emptied(self, key: Key) -> bool:
        """Whether a suspended job gave up its pods; False where it came to its end before."""
        async with aclosing(self.watch(key)) as states:
            async for job in states:
                if job.finished:
                    return False
                if not job.suspend:
                    return True  # somebody else restarted it, and it runs again
                if c.holds(job.conditions, c.SUSPENDED):
                    break
        async with self._connected(key) as server:
            kind = (await find(server, key)).kind
            while await job_logs.pods_of(server, key, kind):  # noqa: ASYNC110 - a kubelet acts
                await asyncio.sleep(job_logs.FIRST_LOOK)
        return True

    async def delete(self, key: Key, seen: JobView | None = None) -> None:
        async with self._connected(key) as server:
            found = await find(server, key)
            version = _known(found, key, seen).get(VERSION, "")
            await lifecycle.delete(server, found.kind.resource, key, found.uid, version)

    async def differences(self, file: JobFile, namespace: str) -> Sequence[Difference]:
        from mpi_trainer.plan.differences import file_differences
        from mpi_trainer.plan.objects import NO_FACTS

        async with self._connected() as server:
            return await file_differences(server.streams, file, namespace, NO_FACTS)

    async def run_in(self, key: Key, pod: str, command: Sequence[str]) -> int:
        async with self._connected(key) as server:
            return await exec.run_in(server, await _running(server, key, pod), command)

    async def fetch(self, key: Key, path: str, destination: str) -> None:
        async with self._connected(key) as server:
            found = await find(server, key)
            alike = found.kind.headless(found.data)
            pods = sorted(await _inside(server, key), key=lambda pod: pod.index)
            pod = next((p for p in pods if alike or p.role == "launcher"), None)
            if pod is None:
                raise JobError(
                    f"cannot copy {path}: no launcher of job {key} runs",
                    exec.copy_hint(found.view, path),
                )
            await exec.fetch(server, pod, path, Path(destination))

    async def rank_pods(self, key: Key) -> dict[int, str]:
        found: dict[int, str] = {}
        async with self._connected(key) as server:
            pods = await _inside(server, key)
            ranks = await asyncio.gather(*(exec.ranks(server, p) for p in pods))
            for pod, there in zip(pods, ranks, strict=True):
                found |= dict.fromkeys(there, pod.name)
        return found

    async def stacks(self, key: Key) -> dict[int, str]:
        found: dict[int, str] = {}
        async with self._connected(key) as server:
            pods = await _inside(server, key)
            for one in await asyncio.gather(*(exec.stacks(server, p) for p in pods)):
                found |= one
        return dict(sorted(found.items()))

    async def usage(
        self, keys: Sequence[Key], gpu_metrics: Sequence[str] | None = None
    ) -> dict[Key, JobUsage]:
        sources = os.environ.get(VARIABLE, "").split() if gpu_metrics is None else gpu_metrics
        async with self._connected() as server:
            return await usage.usage(server, keys, sources)

    async def cpus_in_use(self, namespace: str | None = None) -> float | None:
        async with self._connected() as server:
            return await usage.cpus_in_use(server, namespace or "")

    async def prune(self, namespace: str | None, older_than_seconds: float) -> Sequence[Key]:
        gone = []
        for job in await self.list(namespace):
            ended = job.completed if job.kind in self._pruned else None
            old = ended and (datetime.now(UTC) - ended).total_seconds() >= older_than_seconds
            if old and await self._removed(job):
                gone.append(job.key)
        return gone

    async def _removed(self, job: JobSummary) -> bool:
        """Deletes a job that has ended; not another of its name and kind that came since."""
        key = job.key
        async with self._connected(key) as server:
            found = await find(server, key)
            same = found.kind.resource.kind == job.kind and found.finished
            if same:
                await lifecycle.delete(server, found.kind.resource, key, found.uid)
            return same


def _known(found: FoundJob, key: Key, seen: JobView | None) -> dict[str, str]:
    """The version that a change is for, as metadata has it; empty where any will do."""
    if seen is None:
        return {}
    version = str((seen.manifest.get("metadata") or {}).get(VERSION) or "")
    if found.uid != seen.uid or found.data["metadata"].get(VERSION) != version:
        raise job_changed(key)
    return {VERSION: version}


async def _inside(server: ApiServer, key: Key) -> list[observed.Pod]:
    """The pods of the job that can be entered."""
    kind = (await find(server, key)).kind
    return [p for p in await job_logs.pods_of(server, key, kind) if p.status.phase == "Running"]


async def _running(server: ApiServer, key: Key, name: str) -> observed.Pod:
    pods = await _inside(server, key)
    for pod in pods:
        if name in (pod.name, f"{key.name}-{pod.role}"):
            return pod
    running = ", ".join(p.name for p in pods) or "none"
    raise JobError(f"pod {name} is not running", f"Running pods: {running}.")
