"""What a job that waits says of itself (AC-16, SC-012)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide, refused
from mpi_trainer.decide.observed import ObservedPod
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    event_reasons,
    launcher,
    make_job,
    observe,
    running_job,
    stored,
    worker,
)

NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


NO_NODE = "have no node: of 3 nodes 3 have too little nvidia.com/gpu left"


def pending(index: int, why: str = NO_GPU) -> ObservedPod:
    return worker(index, "Pending", scheduled=False, why=why)


def test_a_job_that_starts_in_time_never_says_that_it_waits() -> None:
    job = make_job()
    job = stored(job, decide(job, observe(), T0))
    early = decide(job, observe(launcher("Pending"), pending(0), worker(1)), at(9))
    assert c.find(early.status.conditions, c.RUNNING) is None
    assert early.requeue_after == timedelta(seconds=1)


def test_what_the_scheduler_misses_is_told_every_30_seconds() -> None:
    job = make_job()
    job = stored(job, decide(job, observe(), T0))
    observed = observe(launcher("Pending"), pending(0), pending(1))
    first = decide(job, observed, at(10))
    said = condition(first.status, c.RUNNING)
    assert (said.status, said.reason) == (c.FALSE, reasons.WAITING)
    assert said.message == (
        f"2 of 3 pods {NO_NODE}; 1 of 3 pods have their node, which starts them (pulling "
        "images, making volumes) (pi-worker-0 and 2 more), after 10 s"
    )
    assert event_reasons(first) == []
    job = stored(job, first)
    quiet = decide(job, observed, at(39))
    assert quiet.status == job.status
    assert quiet.requeue_after == timedelta(seconds=1)
    again = condition(decide(job, observed, at(40)).status, c.RUNNING)
    assert again.message.endswith("(pi-worker-0 and 2 more), after 40 s")
    assert again.last_transition_time == at(10)


def test_a_wait_is_told_as_one_event_with_its_first_repetition() -> None:
    """W-4; a job that is merely slow to start costs no event."""
    job = make_job()
    job = stored(job, decide(job, observe(), T0))
    observed = observe(launcher(), pending(0), pending(1))
    events = []
    for second in (10, 40, 70, 100):
        step = decide(job, observed, at(second))
        events.append([e.message for e in step.events])
        job = stored(job, step)
    assert [len(told) for told in events] == [0, 1, 0, 0]
    assert NO_NODE in events[1][0]


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ((), "none of its 3 pods exists: exceeded quota (pi-worker-0 and 2 more)"),
        (
            (worker(0), pending(1, ""), launcher()),
            "1 of 3 pods have no node: no scheduler has looked at them yet (pi",
        ),
        (
            (worker(0), worker(1, terminating=True)),
            "1 of 3 pods are being deleted, and their node has not confirmed it",
        ),
    ],
)
def test_every_kind_of_wait_has_its_words(pods: tuple[ObservedPod, ...], words: str) -> None:
    job = make_job()
    job = stored(job, decide(job, observe(), T0))
    observed = observe(*pods, refused="exceeded quota")
    assert words in condition(decide(job, observed, at(60)).status, c.RUNNING).message


def test_a_launcher_that_comes_late_waits_for_readiness() -> None:
    job = make_job(launcher_creation_policy="WaitForWorkersReady")
    job = stored(job, decide(job, observe(), T0))
    text = condition(
        decide(job, observe(worker(0), worker(1, ready=False)), at(60)).status, c.RUNNING
    ).message
    assert text == "1 of 3 pods run and are not ready (pi-worker-1), after 60 s"


def test_more_causes_than_anyone_reads_are_counted() -> None:
    job = make_job(6)
    job = stored(job, decide(job, observe(), T0))
    observed = observe(*(pending(i, f"cause {i}") for i in range(6)), launcher())
    text = condition(decide(job, observed, at(60)).status, c.RUNNING).message
    assert text.endswith(
        "have no node: cause 1; and 4 wait for other things (pi-worker-0 and 5 more), after 60 s"
    )


def test_a_running_job_does_not_wait() -> None:
    job, observed = running_job()
    assert decide(job, observed, at(600)).requeue_after is None


def test_a_job_that_ends_no_longer_waits() -> None:
    job = make_job(timeout=20)
    job = stored(job, decide(job, observe(), T0))
    job = stored(job, decide(job, observe(), at(10)))
    over = decide(job, observe(pending(0)), at(20))
    assert condition(over.status, c.RUNNING).message == (
        "MPIJob lab/pi never ran: none of its 3 pods exists yet (pi-worker-0 and 2 more), after "
        "10 s"
    )
    assert NO_NODE in condition(over.status, c.FAILED).message


def test_a_refused_job_is_over_and_says_why() -> None:
    job = make_job()
    over = refused(job, observe().record, reasons.INVALID, "spec.x: wrong", T0)
    failed = condition(over.status, c.FAILED)
    assert (failed.reason, failed.message) == (reasons.INVALID, "spec.x: wrong")
    assert over.status.completion_time == T0
    assert event_reasons(over) == [reasons.CREATED, reasons.INVALID]
