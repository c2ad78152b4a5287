"""How long a TrainJob may wait for its pods, and what is not tried again (AC-16, W-4, L-4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import PHASE, SCHEDULE_TIMEOUT
from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus
from mpi_trainer.decide import reasons
from mpi_trainer.decide.observed import End, Observed, ObservedPod
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.status import find, finished
from tests.unit.decide.trainjob.test_decide import T0, UP, at, decide_at, make_job, pod, stored

WHY = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
NO_NODE = "have no node: of 3 nodes 3 have too little nvidia.com/gpu left"
LATE = pod("pi-node-0-1", "Pending", scheduled=False, why=WHY)


def waiting(now: float, *pods: ObservedPod, asked: str = "", **observed: Any) -> TrainJobDecision:
    """A look at a job whose JobSet has been as it is since it was made."""
    job = make_job({SCHEDULE_TIMEOUT: asked} if asked else None)
    job = stored(job, decide_at(job, at(10), job_set=replace(UP, since=T0)))
    given = {
        "job_set": replace(UP, since=T0),
        "pods": Observed(pods),
        "all_pods": True,
        "schedule_timeout": 300,
    }
    return decide_at(job, at(now), **{**given, **observed})


def test_a_job_whose_pods_do_not_run_ends_at_the_administrators_default() -> None:
    early = waiting(299, pod("pi-node-0-0"), LATE)
    assert not finished(early.status)
    assert early.annotations.cause == (
        f"1 of 2 pods {NO_NODE}; 1 of 2 pods run and are not ready (pi-node-0-1 and 1 more)"
    )
    assert early.requeue_after == timedelta(seconds=1)
    over = waiting(300, pod("pi-node-0-0"), LATE)
    ended = find(over.status, "Failed")
    assert ended is not None
    assert ended.reason == reasons.SCHEDULING_TIMEOUT
    assert f"Not all pods ran within 300 s: 1 of 2 pods {NO_NODE}" in ended.message
    assert SCHEDULE_TIMEOUT in ended.message
    assert over.annotations.phase == status_annotations.FAILED


@pytest.mark.parametrize(
    ("now", "more", "over"),
    [
        (1799, {"asked": "1800"}, False),
        (1800, {"asked": "1800"}, True),
        (1e6, {"asked": "0"}, False),
        (1e6, {"schedule_timeout": 0}, False),
        (60, {"runtime_annotations": {SCHEDULE_TIMEOUT: "60"}}, True),
        (60, {"runtime_annotations": {SCHEDULE_TIMEOUT: "60"}, "asked": "90"}, False),
        (300, {"asked": "soon"}, True),
    ],
    ids=["job's", "job's, over", "without end", "no default", "runtime's", "both", "no number"],
)
def test_the_job_then_its_runtime_then_the_administrator_say_how_long(
    now: float, more: dict[str, Any], over: bool
) -> None:
    assert finished(waiting(now, LATE, **more).status) is over


@pytest.mark.parametrize(
    ("pods", "over"),
    [
        ((), True),
        ((pod("pi-initializer-0-0"),), False),
        ((pod("pi-initializer-0-0", "Pending", preparing=True),), False),
        ((pod("pi-node-0-0"), pod("pi-node-0-1", "Pending")), True),
        ((pod("pi-node-0-0"), pod("pi-node-0-1", ready=False)), False),
    ],
    ids=["no pod", "initializer runs", "init containers", "image does not come", "not ready"],
)
def test_only_pods_that_do_not_run_are_late(pods: tuple[ObservedPod, ...], over: bool) -> None:
    looked = replace(UP, since=T0, jobs=(ReplicatedJobStatus(name="node", active=1),))
    assert finished(waiting(301, *pods, job_set=looked).status) is over


def test_a_jobset_that_nobody_has_looked_at_is_not_late() -> None:
    """JobSet's controller may be down; that is not the job's fault."""
    assert not finished(waiting(1e5).status)


def test_the_time_counts_from_the_last_step_forward() -> None:
    """Nodes may wait for initializers."""
    moved = replace(UP, since=at(2000))
    assert not finished(waiting(2299, LATE, job_set=moved).status)
    assert finished(waiting(2300, LATE, job_set=moved).status)


def test_a_job_that_has_run_is_not_timed() -> None:
    job = make_job({PHASE: status_annotations.RUNNING})
    observed: dict[str, Any] = {
        "pods": Observed((LATE,)),
        "all_pods": True,
        "schedule_timeout": 300,
    }
    assert not finished(decide_at(job, at(1e5), job_set=replace(UP, since=T0), **observed).status)


@pytest.mark.parametrize(
    ("failed", "reason"),
    [
        (pod("pi-launcher-0-0", "Failed", end=End(code=127)), reasons.NO_PROGRAM),
        (pod("pi-node-0-0", "Failed", end=End(code=126)), reasons.NO_PROGRAM),
        (
            pod("pi-node-0-0", "Pending", waiting="InvalidImageName", why="couldn't parse"),
            reasons.IMAGE_INVALID,
        ),
        (pod("pi-launcher-0-0", "Failed", end=End(code=1)), ""),
        (pod("pi-node-0-0", "Pending", waiting="ErrImagePull", why="not found"), ""),
    ],
)
def test_what_every_try_would_repeat_ends_the_job(failed: ObservedPod, reason: str) -> None:
    ended = find(waiting(20, failed).status, "Failed")
    assert (ended.reason if ended is not None else "") == reason
