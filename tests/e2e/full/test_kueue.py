"""Kueue with queued jobs of both kinds: held, admitted, preempted, deactivated, resumed (AC-12)."""

from __future__ import annotations

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
