"""Kueue with queued jobs of both kinds: held, admitted, preempted, deactivated, resumed (AC-12)."""

from __future__ import annotations

import time

import pytest

from tests.cluster import Kubectl, eventually
from tests.e2e.kueue import (
    ACCOUNT,
    PATIENCE,
    counted,
    freed_after,
    made,
    open_queue,
    queue,
    submitted,
)

__all__ = ["queue"]

FREED_WITHIN = 2.0
"""seconds from the end of a preempted job's pods until its share of the queue is free"""

TIMEOUT = 15
"""seconds in which a job must find places"""
LATE = 30
"""seconds by which its end may be later, on a busy machine"""

pytestmark = pytest.mark.timeout(900, func_only=True)


@pytest.mark.parametrize("kind", ["trainjob", "mpijob"])
def test_a_queued_job_is_held_admitted_preempted_and_resumed(queue: Kubectl, kind: str) -> None:
    low = submitted(queue, kind, "low", "low")
    eventually("it is queued", lambda: bool(low.workloads()), PATIENCE)
    eventually("it is held", low.rests, PATIENCE)

    open_queue(queue)
    eventually("it is admitted and runs", low.runs, PATIENCE)
    assert counted(low) == made(low)
    assert {pod["spec"]["serviceAccountName"] for pod in low.pods()} == {ACCOUNT}

    high = submitted(queue, kind, "high", "high")
    assert freed_after(low) < FREED_WITHIN
    eventually("the other gives way", low.rests, PATIENCE)
    eventually("the more important one runs", high.runs, PATIENCE)
    high.let_go()
    done = "Complete" if kind == "trainjob" else "Succeeded"
    eventually("it ends", lambda: high.holds(done), PATIENCE)

    eventually("the first is resumed", low.runs, PATIENCE)
    low.activate(False)
    eventually("a deactivated job rests", low.rests, PATIENCE)
    low.activate(True)
    eventually("a reactivated one runs", low.runs, PATIENCE)
    low.let_go()
    eventually("it ends well after all that", lambda: low.holds(done), PATIENCE)
    eventually("Kueue knows that it has ended", low.finished, PATIENCE)


@pytest.mark.parametrize("kind", ["trainjob", "mpijob"])
def test_time_in_the_queue_is_no_time_to_find_a_place(queue: Kubectl, kind: str) -> None:
    """AC-16, AC-12: it fails in time only once it is admitted, and gives its quota back."""
    job = submitted(queue, kind, "homeless", "low", seconds=TIMEOUT)
    eventually("it is queued", lambda: bool(job.workloads()), PATIENCE)
    held_until = time.monotonic() + 2 * TIMEOUT
    while time.monotonic() < held_until:
        assert not job.holds("Failed"), job.object()["status"]
        time.sleep(1)  # a look; the loop has a deadline
    assert job.rests()

    open_queue(queue)
    eventually("it is admitted", job.reserved, PATIENCE)
    admitted = time.monotonic()
    eventually("it fails", lambda: job.holds("Failed"), PATIENCE)
    assert TIMEOUT - 2 < time.monotonic() - admitted < TIMEOUT + LATE
    conditions = job.object()["status"]["conditions"]
    (failed,) = (c for c in conditions if c["type"] == "Failed")
    assert failed["reason"] == "SchedulingTimeout"
    eventually(
        "no pod remains pending",
        lambda: "Pending" not in {pod["status"]["phase"] for pod in job.pods()},
        PATIENCE,
    )
    eventually("its share of the queue is free", job.finished, PATIENCE)
    waiting = submitted(queue, kind, "next", "low")
    eventually("the next job runs", waiting.runs, PATIENCE)


@pytest.mark.parametrize("kind", ["trainjob", "mpijob"])
def test_a_job_is_admitted_only_when_its_whole_request_fits(queue: Kubectl, kind: str) -> None:
    """AC-12: while there is no room for all of its pods it gets none."""
    open_queue(queue)
    first = submitted(queue, kind, "first", "low")
    eventually("the first runs", first.runs, PATIENCE)
    second = submitted(queue, kind, "second", "low")
    eventually("it is queued", lambda: bool(second.workloads()), PATIENCE)
    for _ in range(10):
        assert second.rests()
        time.sleep(1)  # it must stay so
    first.let_go()
    eventually("when the first has ended it runs", second.runs, PATIENCE)
