"""Kueue, unmodified, with jobs of ours on real nodes; `full/test_kueue.py` has more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.odh import Odh
from tests.cluster import Kubectl, eventually
from tests.e2e.kueue import (
    FLAVOR,
    PATIENCE,
    Queued,
    counted,
    hold_queue,
    made,
    open_queue,
    queue,
    submitted,
)

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
    assert selectors(low) == [FLAVOR, FLAVOR], "Kueue has written its flavor into the job"

    hold_queue(queue)
    odh = Odh(queue.spec.kubeconfig, queue.namespace)
    odh("mpijob", "restart", "low", seconds=PATIENCE)
    odh("mpijob", "clone", "low", "copy")
    for name in ("low", "copy"):
        made_anew = Queued(queue, "mpijob", name)
        eventually("it is held", made_anew.rests, PATIENCE)
        assert selectors(made_anew) == [None, None], "it may be admitted to other nodes"


def selectors(job: Queued) -> list[dict[str, str] | None]:
    roles = job.object()["spec"]["mpiReplicaSpecs"]
    return [roles[role]["template"]["spec"].get("nodeSelector") for role in ("Launcher", "Worker")]


def test_kueue_takes_the_shipped_set_up(queue: Kubectl) -> None:
    """AC-12: flavor, queues and priorities, as docs/queues.md says."""
    folder = Path(__file__).parents[2] / "manifests" / "kueue"
    for part in ("cluster", "namespace"):
        said = queue("apply", "--dry-run=server", "-k", str(folder / part))
        assert "created (server dry run)" in said
