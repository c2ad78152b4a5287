"""What every Backend does for interfaces: the same tests on this machine and on an API server.

The folders of tests import these functions and give them a `backend` by their own fixture, with an
empty namespace and the runtime `RUNTIME`. Jobs are suspended: nothing has to run for these facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
import pytest

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, RunPolicy
from mpi_trainer.api.kinds.trainjob import RuntimeRef, Trainer, TrainJob, TrainJobSpec
from mpi_trainer.sdk.backends.backend import Backend, JobChange, JobSummary, Key
from mpi_trainer.sdk.errors import JobExists, JobNotFound
from mpi_trainer.sdk.job.new import NewJob

RUNTIME = "mpi-openmpi-cpu"
PATIENCE = 60.0


def mpijob(backend: Backend, name: str) -> MPIJob:
    return NewJob(
        name,
        ("echo", name),
        namespace=backend.namespace,
        workers=3,
        slots=2,
        image="registry.example.com/train:1",
        run_policy=RunPolicy(suspend=True),
    ).mpijob()


def trainjob(backend: Backend, name: str) -> TrainJob:
    return TrainJob(
        metadata=ObjectMeta(name=name, namespace=backend.namespace),
        spec=TrainJobSpec(
            runtime_ref=RuntimeRef(name=RUNTIME),
            trainer=Trainer(num_nodes=3, command=("echo", name)),
            suspend=True,
        ),
    )


def key(backend: Backend, name: str) -> Key:
    return Key(backend.namespace, name)


def test_job_of_each_kind_is_seen_as_one_neutral_value(backend: Backend) -> None:
    async def both() -> None:
        await backend.create(mpijob(backend, "mpi"))
        await backend.create_trainjob(trainjob(backend, "train"))
        for name, kind in (("mpi", "MPIJob"), ("train", "TrainJob")):
            view = await backend.get(key(backend, name))
            assert (view.kind, view.key) == (kind, key(backend, name))
            assert view.suspend and not view.finished
            assert view.uid and view.times.created is not None
            assert view.manifest["kind"] == kind
            assert view.manifest["metadata"]["name"] == name
            assert (await backend.details(view.key)).job.manifest["spec"] == view.manifest["spec"]
        own = (await backend.get(key(backend, "train"))).manifest["spec"]
        assert own["runtimeRef"]["name"] == RUNTIME and own["trainer"]["numNodes"] == 3
        found = await backend.list(backend.namespace)
        assert {job.key.name: job.kind for job in found} == {"mpi": "MPIJob", "train": "TrainJob"}

    asyncio.run(both())


def test_pages_hold_every_job_once_and_what_the_list_says_of_it(backend: Backend) -> None:
    async def read() -> None:
        for n in range(5):
            await backend.create(mpijob(backend, f"job-{n}"))
        await backend.create_trainjob(trainjob(backend, "train"))
        found: list[JobSummary] = []
        token, pages = "", 0
        while token or not pages:
            page = await backend.list_page(backend.namespace, 2, token)
            assert len(page.jobs) <= 2
            found += page.jobs
            token, pages = page.token, pages + 1
        assert pages >= 3
        listed = await backend.list(backend.namespace)
        assert sorted(found, key=_name) == sorted(listed, key=_name)
        assert [job.key.name for job in found] == [*(f"job-{n}" for n in range(5)), "train"]
        whole = await backend.list_page(backend.namespace)
        assert [job.key.name for job in whole.jobs][:5] == [f"job-{n}" for n in range(5)]

    asyncio.run(read())


def _name(job: JobSummary) -> str:
    return job.key.name


def test_jobs_are_watched_from_what_is_there_over_what_comes_to_what_goes(
    backend: Backend,
) -> None:
    async def follow() -> None:
        await backend.create(mpijob(backend, "first"))
        async with aclosing(backend.watch_jobs(backend.namespace)) as changes:
            assert await _next(changes, "first") == (False, "MPIJob")
            await backend.create_trainjob(trainjob(backend, "second"))
            assert await _next(changes, "second") == (False, "TrainJob")
            await backend.delete(key(backend, "first"))
            while await _next(changes, "first") != (True, "MPIJob"):
                pass
            assert {job.key.name for job in await backend.list(backend.namespace)} == {"second"}

    asyncio.run(asyncio.wait_for(follow(), PATIENCE))


async def _next(changes: AsyncGenerator[JobChange, None], name: str) -> tuple[bool, str]:
    async for change in changes:
        if change.job.key.name == name:
            return change.deleted, change.job.kind
    raise AssertionError("the watch has ended")


def test_one_job_is_watched_until_it_is_gone(backend: Backend) -> None:
    async def follow() -> None:
        await backend.create(mpijob(backend, "one"))
        async with aclosing(backend.watch(key(backend, "one"))) as states:
            first = await anext(states)
            assert (first.name, first.manifest["kind"]) == ("one", "MPIJob")
            await backend.delete(key(backend, "one"))
            async for _ in states:
                pass
        with pytest.raises(JobNotFound):
            await anext(backend.watch(key(backend, "one")))

    asyncio.run(asyncio.wait_for(follow(), PATIENCE))


def test_copy_is_a_job_of_its_own_like_the_original(backend: Backend) -> None:
    async def copy() -> None:
        original = await backend.create(mpijob(backend, "one"))
        wanted = mpijob(backend, "two")
        wanted = msgspec.structs.replace(wanted, spec=mpijob(backend, "one").spec)
        made = await backend.copy(wanted, original.key)
        assert made.uid != original.uid
        assert made.command == original.command
        assert made.counts.workers.wanted == 3
        with pytest.raises(JobExists):
            await backend.copy(wanted, original.key)

    asyncio.run(copy())


def test_usage_of_a_job_without_pods_says_so_and_one_that_is_not_there_is_left_out(
    backend: Backend,
) -> None:
    async def used() -> None:
        await backend.create(mpijob(backend, "idle"))
        idle, absent = key(backend, "idle"), key(backend, "absent")
        found = await backend.usage([idle, absent])
        assert [*found] == [idle]
        assert (found[idle].pods, found[idle].notes) == ((), (f"no pod of {idle} runs",))

    asyncio.run(used())


def test_what_a_new_job_can_choose_from(backend: Backend) -> None:
    async def ask() -> None:
        runtimes = await backend.runtimes(backend.namespace)
        names = [one.name for one in runtimes]
        assert RUNTIME in names and names == sorted(names)
        assert {one.policy for one in runtimes if one.name == RUNTIME} == {"mpi"}
        assert backend.namespace in await backend.namespaces()
        assert list(await backend.queues(backend.namespace)) == []

    asyncio.run(ask())
