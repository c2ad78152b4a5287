"""Counts of child Jobs are written with what else changes, or a moment later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from mpi_trainer.api.meta import ObjectMeta
from mpi_trainer.api.trainjob import Condition, JobStatus, TrainJob, TrainJobStatus
from mpi_trainer.controller.train.counts import EVERY, Counts
from mpi_trainer.decide.findings import Findings
from mpi_trainer.decide.trainseen import Step

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SOON = NOW + timedelta(seconds=0.5)
JOB = TrainJob(
    metadata=ObjectMeta(name="a", namespace="b", uid="u"),
    status=TrainJobStatus(jobs_status=(JobStatus("node", active=1),)),
)
READY = (JobStatus("node", active=1, ready=1),)
COUNTED = Step(replace(JOB.status, jobs_status=READY), Findings())


@pytest.fixture
def counts() -> Counts:
    made = Counts()
    made.wrote(JOB, NOW)
    return made


def test_a_change_of_counts_alone_waits_for_the_rest_of_the_moment(counts: Counts) -> None:
    """CTL-13."""
    assert counts.can_wait(JOB, COUNTED, SOON) == EVERY - timedelta(seconds=0.5)


def test_it_waits_no_longer_than_that(counts: Counts) -> None:
    assert counts.can_wait(JOB, COUNTED, NOW + EVERY) is None


def test_the_first_is_written_at_once() -> None:
    assert Counts().can_wait(JOB, COUNTED, NOW) is None


def test_what_was_before_the_job_of_this_name_does_not_count(counts: Counts) -> None:
    counts.forget("u")
    assert counts.can_wait(JOB, COUNTED, SOON) is None


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(replace(COUNTED, make=True), id="an-act"),
        pytest.param(replace(COUNTED, findings=Findings(phase="Running")), id="a-finding"),
        pytest.param(
            replace(
                COUNTED,
                status=replace(COUNTED.status, conditions=(Condition("Complete", "True"),)),
            ),
            id="a-condition",
        ),
        pytest.param(Step(JOB.status, Findings()), id="nothing"),
    ],
)
def test_whatever_else_there_is_to_do_is_done_now(counts: Counts, step: Step) -> None:
    assert counts.can_wait(JOB, step, SOON) is None
