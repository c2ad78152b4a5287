"""When a finished job is removed (AC-4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.decide.mpijob.decide import decide
from tests.unit.decide.mpijob.jobs import T0, at, launcher, make_job, observe, replace


def finished(*, ended: bool = True) -> MPIJobStatus:
    failed = c.Condition(type=c.FAILED, status=c.TRUE, last_transition_time=T0)
    created = c.Condition(type=c.CREATED, status=c.TRUE)
    return MPIJobStatus(conditions=(created, failed), completion_time=T0 if ended else None)


@pytest.mark.parametrize(
    ("ttl", "passed", "deleted", "left"),
    [
        (None, 1e9, False, None),
        (60, 0, False, 60),
        (60, 59, False, 1),
        (60, 60, True, None),
        (60, 61, True, None),
        (0, 0, True, None),
        (2**31 - 1, 0, False, 2**31 - 1),
    ],
)
@pytest.mark.parametrize("ended", [True, False], ids=["told", "by condition only"])
def test_job_is_removed_when_its_time_has_passed(
    ttl: int | None, passed: float, deleted: bool, left: int | None, ended: bool
) -> None:
    job = make_job(ttl_seconds_after_finished=ttl, status=finished(ended=ended))
    decision = decide(job, observe(), at(passed))
    assert decision.delete_job is deleted
    assert decision.requeue_after == (None if left is None else timedelta(seconds=left))


def test_cleaning_up_does_not_wait_for_the_ttl() -> None:
    status = finished()
    job = make_job(ttl_seconds_after_finished=60, clean_pod_policy="All", status=status)
    decision = decide(job, observe(launcher("Failed")), at(1))
    assert decision.stop == ("pi-launcher",)
    assert decision.requeue_after == timedelta(seconds=59)


def test_a_job_being_deleted_is_not_deleted_again() -> None:
    job = make_job(ttl_seconds_after_finished=0, status=finished())
    gone = replace(job, metadata=replace(job.metadata, deletion_timestamp=T0))
    assert not decide(gone, observe(launcher()), at(9)).acts
