"""Whose turn it is on a machine that several jobs share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.local.jobs import queue
from mpi_trainer.local.jobs.queue import RANK_MEMORY, ResourceNeed, refusal
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.sdk.job.specs import ResourceRequirements

replace = msgspec.structs.replace
MACHINE = ResourceNeed(cpus=4.0, memory=8 << 30)


class Claim(msgspec.Struct, frozen=True):
    needs_cpus: float = 1.0
    needs_memory: int = 1 << 30
    admitted: bool = False
    queued: float | None = None


RUNS = Claim(admitted=True, queued=0.0)


@pytest.mark.parametrize(
    ("mine", "others", "waits"),
    [
        (Claim(queued=1.0), [], ""),
        (Claim(queued=1.0), [RUNS, RUNS, RUNS], ""),
        (Claim(queued=1.0), [RUNS] * 4, "0 cores"),
        (Claim(needs_memory=6 << 30, queued=1.0), [RUNS] * 3, "5120 MiB are free"),
        (Claim(queued=2.0), [Claim(queued=1.0)], "1 jobs that were there first"),
        (Claim(queued=1.0), [Claim(queued=2.0)], ""),
        # Neither one that is suspended nor one of the same moment is before anybody.
        (Claim(queued=1.0), [Claim(queued=None)], ""),
        (Claim(queued=1.0), [Claim(queued=1.0)], ""),
        # Larger than the machine: alone, or not yet.
        (Claim(needs_cpus=64.0, queued=1.0), [], ""),
        (Claim(needs_cpus=64.0, queued=1.0), [RUNS], "4 cores"),
        (Claim(queued=1.0), [Claim(needs_cpus=64.0, admitted=True)], "0 cores"),
    ],
)
def test_a_job_waits_for_those_before_it_and_for_room(
    mine: Claim, others: list[Claim], waits: str
) -> None:
    found = refusal(mine, others, MACHINE)
    assert waits in found
    assert bool(waits) == bool(found)


claims = st.builds(
    Claim,
    needs_cpus=st.sampled_from([0.5, 1.0, 2.0, 4.0, 9.0]),
    needs_memory=st.sampled_from([0, 1 << 30, 5 << 30, 20 << 30]),
)


@given(wanted=st.lists(claims, min_size=1, max_size=8), data=st.data())
def test_whatever_comes_and_goes_all_run_in_order_and_within_the_machine(
    wanted: list[Claim], data: st.DataObject
) -> None:
    """Never over capacity but for one job alone; first come, first served; nobody waits forever."""
    jobs = {i: replace(claim, queued=float(i)) for i, claim in enumerate(wanted)}
    order: list[int] = []
    while jobs:
        asking = [i for i, job in jobs.items() if not job.admitted]
        for i in data.draw(st.permutations(asking)):
            others = [job for j, job in jobs.items() if j != i]
            if not refusal(jobs[i], others, MACHINE):
                jobs[i] = replace(jobs[i], admitted=True)
                order.append(i)
        running = [job for job in jobs.values() if job.admitted]
        assert running, "nobody runs and somebody waits"
        if len(running) > 1:
            assert sum(job.needs_cpus for job in running) <= MACHINE.cpus
            assert sum(job.needs_memory for job in running) <= MACHINE.memory
        # One ends, or dies: either way nobody counts it any more.
        del jobs[data.draw(st.sampled_from([i for i, job in jobs.items() if job.admitted]))]
    assert order == sorted(order)


def job(workers: int = 2, slots: int = 2, **changes: Any) -> MPIJob:
    return mpijob_with_defaults(
        NewJob("a", ("x",), workers=workers, slots=slots, **changes).mpijob()
    )


def asking(cpu: str, memory: str) -> ResourceRequirements:
    return ResourceRequirements(cpu=cpu, memory=memory)


def test_a_job_without_requests_needs_a_core_and_a_bit_for_every_rank() -> None:
    assert queue.resource_need(job()) == ResourceNeed(4.0, 4 * RANK_MEMORY)


def test_requests_of_workers_count_for_each_of_them() -> None:
    found = queue.resource_need(job(resources=asking("500m", "1Gi")))
    assert found == ResourceNeed(1.0, 2 << 30)


def test_a_request_of_the_launcher_does_not_hide_the_ranks_of_the_workers() -> None:
    made = job()
    content = made.launcher.template.content
    content["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    replicas = dict(made.spec.mpi_replica_specs or {})
    template = type(made.launcher.template).of(content)
    replicas["Launcher"] = replace(made.launcher, template=template)
    made = replace(made, spec=replace(made.spec, mpi_replica_specs=replicas))
    assert queue.resource_need(made).cpus == pytest.approx(4.1)


def test_a_launcher_that_works_has_ranks_and_one_alone_needs_a_core() -> None:
    alone = job(workers=0)
    assert queue.resource_need(alone) == ResourceNeed(1.0, RANK_MEMORY)
    works = replace(alone, spec=replace(alone.spec, run_launcher_as_worker=True))
    assert queue.resource_need(works) == ResourceNeed(2.0, 2 * RANK_MEMORY)
