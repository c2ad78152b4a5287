"""Failures that would be the same at every try end a job at the first (L-4)."""

from __future__ import annotations

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import End, ObservedRank
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    launcher,
    observe,
    rank,
    running_job,
    worker,
)

NO_FILE = "python3: can't open file '/nosuch.py': [Errno 2] No such file or directory"
START = 'exec: "pyhton": executable file not found in $PATH: unknown'
MISSING = "A program was not found or cannot be run: check the command."


@pytest.mark.parametrize(
    ("end", "ranks", "reason"),
    [
        (End(code=127), (), reasons.NO_PROGRAM),
        (End(code=126), (), reasons.NO_PROGRAM),
        (End(code=128, reason="StartError", message=START), (), reasons.NO_PROGRAM),
        (End(code=66, unstarted=True), (), reasons.NO_PROGRAM),
        (End(code=183, unstarted=True), (), reasons.NO_PROGRAM),
        (End(code=134, unstarted=True), (), reasons.NO_PROGRAM),
        (End(code=255), (rank(0, code=127), rank(1, code=15)), reasons.NO_PROGRAM),
        (End(code=2, message=NO_FILE), (), reasons.BAD_ARGUMENTS),
        (End(code=255, message=NO_FILE), (rank(0, code=2),), reasons.BAD_ARGUMENTS),
        (
            End(code=2, message="rank 1 on pi-worker-1 raised sys.exit(2)"),
            (rank(1, code=2),),
            reasons.BAD_ARGUMENTS,
        ),
        (End(code=101, reason="NoSsh", message="this image has no ssh"), (), "NoSsh"),
    ],
)
def test_no_further_attempt_is_made(end: End, ranks: tuple[ObservedRank, ...], reason: str) -> None:
    job, _ = running_job()
    observed = observe(launcher("Failed", end=end), worker(0), worker(1), ranks=ranks)
    over = decide(job, observed, at(5))
    failed = condition(over.status, c.FAILED)
    assert failed.reason == reason
    assert not failed.message.startswith("1 attempts"), "it is told as what it is"
    assert failed.message.endswith("so it is not retried.")
    assert over.record.retry_at is None
    assert [f.reason for f in over.record.failures] == [reason]


@pytest.mark.parametrize(
    ("end", "ranks"),
    [
        (End(code=1), ()),
        (End(code=2), ()),
        (End(code=2, message="rank 0 on pi-worker-0 raised OSError at train.py:3"), ()),
        (End(code=66), ()),
        (End(code=134), (rank(0, code=134),)),
        (End(code=137, reason="OOMKilled"), ()),
        (End(code=128, reason="StartError", message="failed to create shim task: EOF"), ()),
        (End(code=103, reason="WorkersMissing", message="no answer"), ()),
        (End(code=1), (rank(0, code=1), rank(1, code=127, ended=9.0))),
    ],
)
def test_whatever_may_be_different_is_tried_again(
    end: End, ranks: tuple[ObservedRank, ...]
) -> None:
    job, _ = running_job()
    first = tuple(
        r if r.ended else ObservedRank(r.rank, 2, r.pod, end=r.end, ended=1.0) for r in ranks
    )
    observed = observe(launcher("Failed", end=end), worker(0), worker(1), ranks=first)
    step = decide(job, observed, at(5))
    assert not c.finished(step.status.conditions)
    assert step.record.attempt == 2


def test_an_image_without_a_valid_name_ends_the_job_at_once() -> None:
    """It is no wait: no registry can ever have it."""
    job, _ = running_job()
    why = 'Failed to apply default image tag "a b": invalid reference format'
    bad = worker(0, "Pending", waiting="InvalidImageName", why=why)
    observed = observe(launcher("Pending"), bad, worker(1, "Pending"))
    over = decide(job, observed, T0)
    failed = condition(over.status, c.FAILED)
    assert failed.reason == reasons.IMAGE_INVALID
    assert "pi-worker-0" in failed.message
    assert "invalid reference format; correct `image`" in failed.message


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (
            End(code=127),
            f"exit code 127. {MISSING}",
        ),
        (
            End(code=66, unstarted=True),
            MISSING,
        ),
        (End(code=128, reason="StartError", message=START), START),
        (End(code=2, message=NO_FILE), NO_FILE),
    ],
)
def test_a_missing_program_is_told_in_words_and_one_attempt_says_nothing_of_others(
    end: End, words: str
) -> None:
    """`odh run pyhton` said no more than that mpirun ended with exit code 66."""
    job, _ = running_job(backoff_limit=0)
    observed = observe(launcher("Failed", end=end), worker(0), worker(1))
    assert condition(decide(job, observed, at(5)).status, c.FAILED).message.endswith(words)


def test_an_image_that_cannot_be_pulled_is_waited_for() -> None:
    """A registry may be down, a tag may be pushed: the scheduling time bounds it."""
    job, _ = running_job()
    late = worker(0, "Pending", waiting="ImagePullBackOff", why="Back-off pulling image")
    observed = observe(launcher("Pending"), late, worker(1, "Pending"))
    assert not c.finished(decide(job, observed, T0).status.conditions)
