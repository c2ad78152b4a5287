"""Kueue, unmodified, with jobs of ours on real nodes; `full/test_kueue.py` has more of it."""

from __future__ import annotations

import pytest

from tests.cluster import Kubectl, eventually
from tests.e2e.kueue import PATIENCE, counted, made, open_queue, queue, submitted

__all__ = ["queue"]

pytestmark = pytest.mark.timeout(400, func_only=True)


def test_a_job_is_admitted_whole_and_gives_way_to_a_more_important_one(queue: Kubectl) -> None:
    """AC-12: the queue has room for one of them at a time, with all its pods or none."""
    open_queue(queue)
    low = submitted(queue, "mpijob", "low", "low")
    eventually("it is admitted and runs", low.runs, PATIENCE)
    assert counted(low) == made(low)

    high = submitted(queue, "mpijob", "high", "high")
    eventually("the more important one runs", high.runs, PATIENCE)
    eventually("the other has given way with all its pods", low.rests, PATIENCE)
    high.let_go()
    eventually("it ends", lambda: high.holds("Succeeded"), PATIENCE)

    eventually("the first is resumed", low.runs, PATIENCE)
    low.let_go()
    eventually("it ends well", lambda: low.holds("Succeeded"), PATIENCE)
