"""What a job that waits says of itself (AC-16, SC-012)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide, refused
from mpi_trainer.decide.observed import ObservedPod
from tests.unit.decide.world import (
    T0,
    at,
    condition,
    launcher,
    look_at,
    make_job,
    running_job,
    stored,
    told,
    worker,
)

NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def pending(index: int, why: str = NO_GPU) -> ObservedPod:
    return worker(index, "Pending", scheduled=False, why=why)


def test_a_job_that_starts_in_time_never_says_that_it_waits() -> None:
    job = make_job()
    job = stored(job, decide(job, look_at(), T0))
    early = decide(job, look_at(launcher("Pending"), pending(0), worker(1)), at(9))
    assert c.find(early.status.conditions, c.RUNNING) is None
    assert early.requeue_after == timedelta(seconds=1)


def test_the_schedulers_own_words_are_told_every_30_seconds() -> None:
    job = make_job()
    job = stored(job, decide(job, look_at(), T0))
    seen = look_at(launcher("Pending"), pending(0), pending(1))
    first = decide(job, seen, at(10))
    said = condition(first.status, c.RUNNING)
    assert (said.status, said.reason) == (c.FALSE, reasons.WAITING)
    assert said.message == (
        f"3 of 3 pods do not run after 10 s; pi-worker-0 and 1 more: {NO_GPU}; "
        "pi-launcher: starting"
    )
    assert told(first) == []
    job = stored(job, first)
    quiet = decide(job, seen, at(39))
    assert quiet.status == job.status
    assert quiet.requeue_after == timedelta(seconds=1)
    again = condition(decide(job, seen, at(40)).status, c.RUNNING)
    assert again.message.startswith("3 of 3 pods do not run after 40 s")
    assert again.last_transition_time == at(10)


def test_a_wait_is_told_as_one_event_with_its_first_repetition() -> None:
    """W-4; a job that is merely slow to start costs no event."""
    job = make_job()
    job = stored(job, decide(job, look_at(), T0))
    seen = look_at(launcher(), pending(0), pending(1))
    events = []
    for second in (10, 40, 70, 100):
        step = decide(job, seen, at(second))
        events.append([e.message for e in step.events])
        job = stored(job, step)
    assert [len(told) for told in events] == [0, 1, 0, 0]
    assert NO_GPU in events[1][0]


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ((), "pi-worker-0 and 2 more: exceeded quota"),
        ((worker(0), pending(1, ""), launcher()), "pi-worker-1: no node yet"),
        ((worker(0), worker(1, terminating=True)), "pi-worker-1: being deleted"),
    ],
)
def test_every_kind_of_wait_has_its_words(pods: tuple[ObservedPod, ...], words: str) -> None:
    job = make_job()
    job = stored(job, decide(job, look_at(), T0))
    seen = look_at(*pods, refused="exceeded quota")
    assert words in condition(decide(job, seen, at(60)).status, c.RUNNING).message


def test_a_launcher_that_comes_late_waits_for_readiness() -> None:
    job = make_job(launcher_creation_policy="WaitForWorkersReady")
    job = stored(job, decide(job, look_at(), T0))
    text = condition(
        decide(job, look_at(worker(0), worker(1, ready=False)), at(60)).status, c.RUNNING
    ).message
    assert text == "1 of 3 pods do not run after 60 s; pi-worker-1: not ready"


def test_more_causes_than_anyone_reads_are_counted() -> None:
    job = make_job(6)
    job = stored(job, decide(job, look_at(), T0))
    seen = look_at(*(pending(i, f"cause {i}") for i in range(6)), launcher())
    text = condition(decide(job, seen, at(60)).status, c.RUNNING).message
    assert text.endswith("pi-worker-2: cause 2; and 3 other causes")


def test_a_running_job_does_not_wait() -> None:
    job, seen = running_job()
    assert decide(job, seen, at(600)).requeue_after is None


def test_a_job_that_ends_no_longer_waits() -> None:
    job = make_job(timeout=20)
    job = stored(job, decide(job, look_at(), T0))
    job = stored(job, decide(job, look_at(), at(10)))
    over = decide(job, look_at(pending(0)), at(20))
    assert condition(over.status, c.RUNNING).message == (
        "MPIJob lab/pi never ran: 3 of 3 pods do not run after 10 s; pi-worker-0 and 2 more: not "
        "made yet"
    )
    assert NO_GPU.rstrip(".") in condition(over.status, c.FAILED).message


def test_a_refused_job_is_over_and_says_why() -> None:
    job = make_job()
    over = refused(job, look_at().record, reasons.INVALID, "spec.x: wrong", T0)
    failed = condition(over.status, c.FAILED)
    assert (failed.reason, failed.message) == (reasons.INVALID, "spec.x: wrong")
    assert over.status.completion_time == T0
    assert told(over) == [reasons.CREATED, reasons.INVALID]
