"""What is rehearsed is what will be played: valid jobs of each kind."""

from __future__ import annotations

from mpi_trainer.api import load
from mpi_trainer.controller import rehearsal


def test_each_kind_is_rehearsed_with_a_job_that_would_run() -> None:
    rehearsal.play()
    assert load.job(rehearsal._mpijob()).errors == ()
    assert load.runtime(rehearsal._runtime()).errors == ()
    assert load.train_job(rehearsal._trainjob()).errors == ()
