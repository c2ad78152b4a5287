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
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.annotations import CODE
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.kube import requests
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import KubeError, ServerFault, Unreachable
from mpi_trainer.sdk.backends import views
from mpi_trainer.sdk.backends.backend import (
    JobChange,
    JobDetails,
    JobPage,
    JobSummary,
    JobView,
    Key,
    LogLine,
    LogQuery,
    QueueInfo,
)
from mpi_trainer.sdk.backends.cluster import (
    choices,
    code,
    creation,
    deletion,
    exec,
    job_changes,
    job_logs,
    namespace_limits,
    observed,
    trainjobs,
)
from mpi_trainer.sdk.backends.cluster.connections import Home, Homes, OpenClient, streaming
from mpi_trainer.sdk.backends.cluster.defaults import IMAGE, for_cluster
from mpi_trainer.sdk.backends.cluster.details import details
from mpi_trainer.sdk.backends.cluster.errors import told
from mpi_trainer.sdk.backends.cluster.find import FoundJob, find, page, readable, summaries
from mpi_trainer.sdk.backends.cluster.kinds import KINDS, MPIJOB, Kind
from mpi_trainer.sdk.backends.cluster.outages import Say
from mpi_trainer.sdk.code.bundle import bundle
from mpi_trainer.sdk.errors import JobError

replace = msgspec.structs.replace


def _on_stderr(text: str) -> None:
    print(f"mpi-trainer: {text}", file=sys.stderr, flush=True)


class ClusterBackend:
    """Jobs of one cluster, of the `kinds` that are meant.

    `say` hears what a person should know while something takes long. With `single_answers` as
    `open_client` nothing can be watched, followed or entered.
    """

    def __init__(
        self,
        config: Config,
        say: Say = _on_stderr,
        kinds: tuple[Kind, ...] = KINDS,
        open_client: OpenClient = streaming,
    ) -> None:
        self.config = config
        self._say = say
        self._homes = Homes(config, say, kinds, open_client)
        # Other kinds have other owners' habits: theirs are cleared away only where they are named.
        pruned = (MPIJOB,) if kinds == KINDS else kinds
        self._pruned = frozenset(kind.resource.kind for kind in pruned)

    @property
    def name(self) -> str:
        """The API server's address."""
        return self.config.server

    @property
    def namespace(self) -> str:
        return self.config.namespace

    async def create(self, job: MPIJob) -> JobView:
        ready = for_cluster(job, os.environ.get(IMAGE, ""), sys.executable)
        async with self._submitting(ready) as (home, key, placed):
            return await creation.create(home, key, await self._fitted(home, placed))

    async def submit(self, job: MPIJob) -> JobView:
        """Submits the job as it is written: nothing is filled in."""
        async with self._submitting(job) as (home, key, placed):
            return await creation.create(home, key, placed)

    async def submit_train(self, job: TrainJob) -> JobView:
        """Submits a TrainJob; what is wrong with its runtime is the server's to say."""
        key = Key(job.namespace or self.namespace, job.name)
        with told(key):
            async with self._homes.home() as home:
                return await trainjobs.submit(home, key, job)

    async def attach(self, body: Mapping[str, Any]) -> bool:
        """Makes a ConfigMap or Secret that jobs mount; whether it was not there before."""
        namespace = body["metadata"].get("namespace") or self.namespace
        with told():
            async with self._homes.home() as home:
                return await creation.attach(home, namespace, body)

    async def refusals(self, job: MPIJob | TrainJob) -> tuple[str, ...]:
        """What the server would refuse the job for; nothing is made."""
        key = Key(job.namespace or self.namespace, job.name)
        placed = replace(job, metadata=replace(job.metadata, namespace=key.namespace))
        with told(key):
            async with self._homes.home() as home:
                if isinstance(placed, MPIJob):
                    asked = creation.create(home, key, placed, dry_run=True)
                else:
                    asked = trainjobs.submit(home, key, placed, dry_run=True)
                return await creation.refusals(asked)

    async def fitted(self, job: MPIJob) -> namespace_limits.Fitted:
        """The job with what its namespace demands of every container, and notes about that."""
        async with self._submitting(job) as (home, _, placed):
            demands = await creation.demanded(home, placed.namespace)
            return namespace_limits.fitted(placed, demands)

    async def train(self, job: TrainJob) -> JobView | None:
        key = Key(job.namespace or self.namespace, job.name)
        placed = replace(job, metadata=replace(job.metadata, namespace=key.namespace))
        with told(key):
            async with self._homes.home() as home:
                return await trainjobs.create(home, key, placed)

    async def ship(self, job: MPIJob, workdir: str) -> JobView:
        packed = await asyncio.to_thread(bundle, workdir)
        ready = for_cluster(job, os.environ.get(IMAGE, ""), sys.executable)
        async with self._submitting(ready) as (home, key, placed):
            whole = code.with_code(await self._fitted(home, placed), packed)
            return await creation.with_code(home, key, whole, code.data(packed))

    async def _fitted(self, home: Home, job: MPIJob) -> MPIJob:
        """The job with what its namespace demands of every container."""
        found = namespace_limits.fitted(job, await creation.demanded(home, job.namespace))
        for note in found.notes:
            self._say(note)
        return found.job

    async def copy(self, job: MPIJob, original: Key) -> JobView:
        """Submits a copy; code that was shipped with the original goes with it too."""
        async with self._submitting(job) as (home, key, placed):
            if CODE not in placed.metadata.annotations:
                return await creation.create(home, key, placed)
            shipped = await creation.shipped(home, original, placed.metadata.annotations)
            if not shipped:
                raise JobError(
                    f"the code that was sent along with job {original} is gone",
                    "Submit it from the folder: `odh mpijob create --workdir`.",
                )
            return await creation.with_code(home, key, code.renamed(placed), shipped)

    @asynccontextmanager
    async def _submitting(self, job: MPIJob) -> AsyncIterator[tuple[Home, Key, MPIJob]]:
        key = Key(job.namespace or self.namespace, job.name)
        placed = replace(job, metadata=replace(job.metadata, namespace=key.namespace))
        with told(key):
            async with self._homes.home() as home:
                yield home, key, placed

    async def get(self, key: Key) -> JobView:
        with told(key):
            async with self._homes.home() as home:
                return (await find(home, key)).view

    async def details(self, key: Key) -> JobDetails:
        with told(key):
            async with self._homes.home() as home:
                return await details(home, key, await find(home, key))

    async def summary(self, key: Key) -> JobSummary:
        """Of an MPIJob its object says enough; other kinds need what is around theirs."""
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                if found.kind is MPIJOB:
                    return views.summary(found.view)
                return views.details_summary(await details(home, key, found))

    async def list(self, namespace: str | None = None) -> Sequence[JobSummary]:
        with told():
            async with self._homes.home() as home:
                return await summaries(home, namespace or "")

    async def list_readable(
        self, namespace: str | None = None
    ) -> tuple[Sequence[JobSummary], tuple[str, ...]]:
        """Jobs as `list` has them, and the kinds of which we may not list any."""
        with told():
            async with self._homes.home() as home:
                return await readable(home, namespace or "")

    async def list_page(
        self, namespace: str | None = None, limit: int = 500, token: str = ""
    ) -> JobPage:
        with told():
            async with self._homes.home() as home:
                return await page(home, namespace or "", limit, token)

    async def watch_jobs(self, namespace: str | None = None) -> AsyncGenerator[JobChange, None]:
        with told():
            async with (
                self._homes.home() as home,
                aclosing(job_changes.changes(home, namespace or "")) as changes,
            ):
                async for change in changes:
                    yield change

    async def watch(self, key: Key) -> AsyncGenerator[JobView, None]:
        last = None
        with told(key):
            async with self._homes.home() as home:
                first = await find(home, key)
                async with aclosing(home.watches.follow(first.kind.resource, key)) as states:
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
        with told(key):
            async with self._homes.home() as home:
                job = await find(home, key)
                async with aclosing(job_logs.lines(home, key, job, query)) as lines:
                    async for line in lines:
                        yield line

    async def suspend(self, key: Key) -> JobView:
        return await self._suspend(key, True)

    async def resume(self, key: Key) -> JobView:
        return await self._suspend(key, False)

    async def _suspend(self, key: Key, wanted: bool) -> JobView:
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                kind = found.kind
                if found.finished:
                    verb, word = "suspended" if wanted else "resumed", kind.resource.kind.lower()
                    raise JobError(
                        f"job {key} has ended and cannot be {verb}",
                        f"Run it again: `odh {word} restart {key.typed}`.",
                    )
                change = {"metadata": {"uid": found.uid}, **kind.suspended(wanted)}
                request = requests.patch(kind.resource, key.namespace, key.name, change, "merge")
                return kind.view(await home.call(request))

    async def restart(self, key: Key) -> JobView:
        if not (await self.get(key)).finished:
            await self.suspend(key)
            if await self._emptied(key):
                return await self.resume(key)
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                shipped = await creation.shipped(home, key, found.view.annotations)
                await creation.rehearse(home, found)
                # Whoever is interrupted in the middle must not have lost the job.
                kept = await asyncio.to_thread(_kept, creation.successor(key, found))
                work = asyncio.ensure_future(_anew(home, key, found, shipped, kept))
                try:
                    return await asyncio.shield(work)
                except asyncio.CancelledError:
                    self._say(f"making {key} again; until it is there it is kept in {kept}")
                    await work
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
        with told(key):
            async with self._homes.home() as home:
                kind = (await find(home, key)).kind
                while await job_logs.pods_of(home, key, kind):  # noqa: ASYNC110 - a kubelet acts
                    await asyncio.sleep(job_logs.FIRST_LOOK)
        return True

    async def delete(self, key: Key) -> None:
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                await deletion.delete(home, found.kind.resource, key, found.uid)

    async def run_in(self, key: Key, pod: str, command: Sequence[str]) -> int:
        with told(key):
            async with self._homes.home() as home:
                return await exec.run_in(home, await _running(home, key, pod), command)

    async def fetch(self, key: Key, path: str, destination: str) -> None:
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                alike = found.kind.headless(found.data)
                pods = sorted(await _inside(home, key), key=lambda pod: pod.index)
                pod = next((p for p in pods if alike or p.role == "launcher"), None)
                if pod is None:
                    raise JobError(
                        f"{path} was the pod's own: no launcher of job {key} runs",
                        "Let the job write to a volume, or copy while it runs.",
                    )
                await exec.fetch(home, pod, path, Path(destination))

    async def places(self, key: Key) -> dict[int, str]:
        found: dict[int, str] = {}
        with told(key):
            async with self._homes.home() as home:
                pods = await _inside(home, key)
                ranks = await asyncio.gather(*(exec.ranks(home, p) for p in pods))
                for pod, there in zip(pods, ranks, strict=True):
                    found |= dict.fromkeys(there, pod.name)
        return found

    async def stacks(self, key: Key) -> dict[int, str]:
        found: dict[int, str] = {}
        with told(key):
            async with self._homes.home() as home:
                pods = await _inside(home, key)
                for one in await asyncio.gather(*(exec.stacks(home, p) for p in pods)):
                    found |= one
        return dict(sorted(found.items()))

    async def prune(self, namespace: str | None, older_than_seconds: float) -> Sequence[Key]:
        gone = []
        for job in await self.list(namespace):
            ended = job.completed if job.kind in self._pruned else None
            old = ended and (datetime.now(UTC) - ended).total_seconds() >= older_than_seconds
            if old and await self._removed(job):
                gone.append(job.key)
        return gone

    async def runtimes(self, namespace: str) -> Sequence[Runtime]:
        with told():
            async with self._homes.home() as home:
                return await choices.runtimes(home, namespace)

    async def namespaces(self) -> Sequence[str]:
        with told():
            async with self._homes.home() as home:
                return await choices.namespaces(home, self.namespace)

    async def queues(self, namespace: str) -> Sequence[QueueInfo]:
        with told():
            async with self._homes.home() as home:
                return await choices.queues(home, namespace)

    async def _removed(self, job: JobSummary) -> bool:
        """Deletes a job that has ended; not another of its name and kind that came since."""
        key = job.key
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                same = found.kind.resource.kind == job.kind and found.finished
                if same:
                    await deletion.delete(home, found.kind.resource, key, found.uid)
                return same


def _kept(manifest: dict[str, Any]) -> Path:
    """A file for its owner alone that holds the job."""
    name = f"{manifest['metadata']['name']}-"
    with NamedTemporaryFile("wb", prefix=name, suffix=".json", delete=False) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    return Path(file.name)


async def _anew(
    home: Home, key: Key, found: FoundJob, shipped: Mapping[str, str], kept: Path
) -> JobView:
    """The job deleted and made again; `kept` holds it meanwhile, and stays where that fails."""
    hint = f"It is kept in {kept}; make it with `kubectl create -f {kept}`."
    try:
        await deletion.delete(home, found.kind.resource, key, found.uid)
    except (Unreachable, ServerFault) as error:
        raise JobError(f"job {key} may be deleted and is not made again: {error}", hint) from error
    except KubeError:
        await asyncio.to_thread(kept.unlink)  # the server has refused, so it is still there
        raise
    try:
        made = await creation.again(home, key, found, shipped)
    except (KubeError, TimeoutError) as error:
        problem = f"job {key} is deleted and could not be made again: {error or 'no answer'}"
        raise JobError(problem, hint) from error
    await asyncio.to_thread(kept.unlink)
    return made


async def _inside(home: Home, key: Key) -> list[observed.Pod]:
    """The pods of the job that can be entered."""
    kind = (await find(home, key)).kind
    return [p for p in await job_logs.pods_of(home, key, kind) if p.status.phase == "Running"]


async def _running(home: Home, key: Key, name: str) -> observed.Pod:
    pods = await _inside(home, key)
    for pod in pods:
        if name in (pod.name, f"{key.name}-{pod.role}"):
            return pod
    running = ", ".join(p.name for p in pods) or "none"
    raise JobError(f"pod {name} does not run", f"Pods that run: {running}.")
