"""The warm-up uses what will be used: valid jobs of each kind."""

from __future__ import annotations

from mpi_trainer.api.yaml import load
from mpi_trainer.controller import warmup


def test_each_kind_is_warmed_up_with_a_job_that_would_run() -> None:
    warmup.run()
    assert load.job(warmup._mpijob()).errors == ()
    assert load.runtime(warmup._runtime()).errors == ()
    assert load.train_job(warmup._trainjob()).errors == ()
