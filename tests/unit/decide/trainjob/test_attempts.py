"""A pod of a TrainJob that failed and is tried again: told while the job goes on (W-7)."""

from __future__ import annotations

from msgspec.structs import replace

from mpi_trainer.api.kinds.trainjob import ReplicatedJobStatus
from mpi_trainer.decide.observed import End, Observed
from mpi_trainer.decide.trainjob.decide import RETRIED_AFTER
from tests.unit.decide.trainjob.test_decide import T0, UP, at, decide_at, make_job, pod, stored

ACTIVE = replace(UP, jobs=(ReplicatedJobStatus("node", active=1),), since=T0)
READY = replace(UP, jobs=(ReplicatedJobStatus("node", active=1, ready=1),), since=T0)
LATER = at(RETRIED_AFTER.total_seconds())
SEVEN = Observed((pod("pi-node-0-0", "Failed", end=End(code=7, message="no data")),))
WORDS = "Pod pi-node-0-0 ended with exit code 7: no data; its Job tries again"


def test_how_a_node_failed_is_told_while_it_is_tried_again() -> None:
    job = make_job()
    running = stored(job, decide_at(job, torch=True, job_set=READY))
    step = decide_at(running, LATER, torch=True, job_set=ACTIVE, pods=SEVEN)
    assert (step.annotations.phase, step.annotations.cause) == ("Running", WORDS)
    assert [(event.type, event.reason, event.message) for event in step.events] == [
        ("Warning", "PodFailed", WORDS)
    ]
    again = decide_at(stored(running, step), LATER, torch=True, job_set=ACTIVE, pods=SEVEN)
    assert (again.annotations, again.events) == (step.annotations, ())


def test_it_is_forgotten_once_all_of_it_runs() -> None:
    job = make_job()
    failed = stored(job, decide_at(job, LATER, torch=True, job_set=ACTIVE, pods=SEVEN))
    step = decide_at(failed, LATER, torch=True, job_set=READY, pods=SEVEN)
    assert (step.annotations.phase, step.annotations.cause) == ("Running", "")


def test_a_jobset_that_ends_by_it_has_the_time_to() -> None:
    """It says the same, and one write is enough."""
    step = decide_at(make_job(), at(1), torch=True, job_set=ACTIVE, pods=SEVEN)
    assert step.annotations.cause == ""
    assert step.requeue_after == RETRIED_AFTER - (at(1) - T0)
