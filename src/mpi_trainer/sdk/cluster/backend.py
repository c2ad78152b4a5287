"""Jobs on a cluster, with the caller's own rights and nothing else.

Everything goes through the public API, so it works wherever MPIJobs are served, whichever
controller serves them. Waiting is one watch, however many wait. What the API server refuses is
told as the errors of `sdk/errors.py`; one that is away for a while is waited for.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mpi_trainer.api import conditions as c
from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.kube import requests
from mpi_trainer.kube.config import Config
from mpi_trainer.sdk.backend import JobDetails, JobSummary, Key, LogLine, LogQuery
from mpi_trainer.sdk.bundle import bundle
from mpi_trainer.sdk.cluster import code, creation, deletion, entering, joblogs, seen, training
from mpi_trainer.sdk.cluster.adapting import IMAGE, for_cluster
from mpi_trainer.sdk.cluster.details import details
from mpi_trainer.sdk.cluster.finding import find, summaries
from mpi_trainer.sdk.cluster.homes import Home, Homes
from mpi_trainer.sdk.cluster.kinds import MPIJOB
from mpi_trainer.sdk.cluster.outages import Say
from mpi_trainer.sdk.cluster.refusals import told
from mpi_trainer.sdk.errors import JobError

replace = msgspec.structs.replace


def _on_stderr(text: str) -> None:
    print(f"mpi-trainer: {text}", file=sys.stderr, flush=True)


class ClusterBackend:
    """Jobs of one cluster. `say` hears what a person should know while something takes long."""

    def __init__(self, config: Config, say: Say = _on_stderr) -> None:
        self.config = config
        self._homes = Homes(config, say)

    @property
    def name(self) -> str:
        """The API server's address."""
        return self.config.server

    @property
    def namespace(self) -> str:
        return self.config.namespace

    async def create(self, job: MPIJob) -> MPIJob:
        ready = for_cluster(job, os.environ.get(IMAGE, ""), sys.executable)
        async with self._submitting(ready) as (home, key, placed):
            return await creation.create(home, key, placed)

    async def train(self, job: TrainJob) -> MPIJob | None:
        key = Key(job.namespace or self.namespace, job.name)
        placed = replace(job, metadata=replace(job.metadata, namespace=key.namespace))
        with told(key):
            async with self._homes.home() as home:
                return await training.create(home, key, placed)

    async def ship(self, job: MPIJob, workdir: str) -> MPIJob:
        packed = await asyncio.to_thread(bundle, workdir)
        ready = for_cluster(job, os.environ.get(IMAGE, ""), sys.executable)
        async with self._submitting(code.with_code(ready, packed)) as (home, key, placed):
            return await creation.with_code(home, key, placed, code.data(packed))

    @asynccontextmanager
    async def _submitting(self, job: MPIJob) -> AsyncIterator[tuple[Home, Key, MPIJob]]:
        key = Key(job.namespace or self.namespace, job.name)
        placed = replace(job, metadata=replace(job.metadata, namespace=key.namespace))
        with told(key):
            async with self._homes.home() as home:
                yield home, key, placed

    async def get(self, key: Key) -> MPIJob:
        with told(key):
            async with self._homes.home() as home:
                return (await find(home, key)).job

    async def manifest(self, key: Key) -> dict[str, Any]:
        """The job as its own API has it."""
        with told(key):
            async with self._homes.home() as home:
                return (await find(home, key)).data

    async def details(self, key: Key) -> JobDetails:
        with told(key):
            async with self._homes.home() as home:
                return await details(home, key, await find(home, key))

    async def list(self, namespace: str | None = None) -> Sequence[JobSummary]:
        with told():
            async with self._homes.home() as home:
                return await summaries(home, namespace or "")

    async def watch(self, key: Key) -> AsyncIterator[MPIJob]:
        last = None
        with told(key):
            async with self._homes.home() as home:
                first = await find(home, key)
                async with aclosing(home.watches.follow(first.kind.resource, key)) as states:
                    async for found in states:
                        if found is None or found["metadata"]["uid"] != first.uid:
                            return
                        job = first.kind.job(found)
                        if job.status != last:
                            last = job.status
                            yield job
                        if c.finished(job.status.conditions):
                            return

    async def logs(self, key: Key, query: LogQuery) -> AsyncIterator[LogLine]:
        with told(key):
            async with self._homes.home() as home:
                job = await find(home, key)
                async with aclosing(joblogs.lines(home, key, job, query)) as lines:
                    async for line in lines:
                        yield line

    async def suspend(self, key: Key) -> MPIJob:
        return await self._suspend(key, True)

    async def resume(self, key: Key) -> MPIJob:
        return await self._suspend(key, False)

    async def _suspend(self, key: Key, wanted: bool) -> MPIJob:
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                if found.finished:
                    verb = "suspended" if wanted else "resumed"
                    raise JobError(
                        f"job {key} has ended and cannot be {verb}",
                        f"Run it again: `odh mpijob restart {key.name}`.",
                    )
                kind = found.kind
                change = {"metadata": {"uid": found.uid}, **kind.suspended(wanted)}
                request = requests.patch(kind.resource, key.namespace, key.name, change, "merge")
                return kind.job(await home.call(request))

    async def restart(self, key: Key) -> MPIJob:
        if not c.finished((await self.get(key)).status.conditions):
            await self.suspend(key)
            if await self._emptied(key):
                return await self.resume(key)
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                shipped = await creation.shipped(home, key, found.job)
                await creation.rehearse(home, found)
                await deletion.delete(home, found.kind.resource, key, found.uid)
                return await creation.again(home, key, found, shipped)

    async def _emptied(self, key: Key) -> bool:
        """Whether a suspended job gave up its pods; False where it came to its end before."""
        async with aclosing(self.watch(key)) as states:  # type: ignore[type-var]
            async for job in states:
                if c.finished(job.status.conditions):
                    return False
                if not job.spec.run_policy.suspend:
                    return True  # somebody else restarted it, and it runs again
                if c.holds(job.status.conditions, c.SUSPENDED):
                    break
        with told(key):
            async with self._homes.home() as home:
                kind = (await find(home, key)).kind
                while await joblogs.pods_of(home, key, kind):  # noqa: ASYNC110 - a kubelet acts
                    await asyncio.sleep(joblogs.FIRST_LOOK)
        return True

    async def delete(self, key: Key) -> None:
        with told(key):
            async with self._homes.home() as home:
                found = await find(home, key)
                await deletion.delete(home, found.kind.resource, key, found.uid)

    async def run_in(self, key: Key, pod: str, command: Sequence[str]) -> int:
        with told(key):
            async with self._homes.home() as home:
                return await entering.run_in(home, await _running(home, key, pod), command)

    async def fetch(self, key: Key, path: str, destination: str) -> None:
        with told(key):
            async with self._homes.home() as home:
                pod = next((p for p in await _inside(home, key) if p.role == "launcher"), None)
                if pod is None:
                    raise JobError(
                        f"{path} was the pod's own: no launcher of job {key} runs",
                        "Let the job write to a volume, or copy while it runs.",
                    )
                await entering.fetch(home, pod, path, Path(destination))

    async def places(self, key: Key) -> dict[int, str]:
        found: dict[int, str] = {}
        with told(key):
            async with self._homes.home() as home:
                pods = await _inside(home, key)
                ranks = await asyncio.gather(*(entering.ranks(home, p) for p in pods))
                for pod, there in zip(pods, ranks, strict=True):
                    found |= dict.fromkeys(there, pod.name)
        return found

    async def stacks(self, key: Key) -> dict[int, str]:
        found: dict[int, str] = {}
        with told(key):
            async with self._homes.home() as home:
                pods = await _inside(home, key)
                for one in await asyncio.gather(*(entering.stacks(home, p) for p in pods)):
                    found |= one
        return dict(sorted(found.items()))

    async def prune(self, namespace: str | None, older_than_seconds: float) -> Sequence[Key]:
        gone = []
        for job in await self.list(namespace):
            # Other kinds have other owners' habits; nobody asked for theirs to be cleared away.
            ended = job.completed if job.kind == MPIJOB.resource.kind else None
            if ended and (datetime.now(UTC) - ended).total_seconds() >= older_than_seconds:
                await self.delete(job.key)
                gone.append(job.key)
        return gone


async def _inside(home: Home, key: Key) -> list[seen.Pod]:
    """The pods of the job that can be entered."""
    kind = (await find(home, key)).kind
    return [p for p in await joblogs.pods_of(home, key, kind) if p.status.phase == "Running"]


async def _running(home: Home, key: Key, name: str) -> seen.Pod:
    pods = await _inside(home, key)
    for pod in pods:
        if name in (pod.name, f"{key.name}-{pod.role}"):
            return pod
    running = ", ".join(p.name for p in pods) or "none"
    raise JobError(f"pod {name} does not run", f"Pods that run: {running}.")
