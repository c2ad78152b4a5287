"""Plans of TrainJobs whose length is for users to choose are made beside the loop (S-1, W-7)."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.trainjob import TrainJobCondition, TrainJobStatus
from mpi_trainer.api.yaml import load
from mpi_trainer.controller import stored_job
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.controller.trainjob import reconcile
from mpi_trainer.decide import history
from mpi_trainer.decide.history import Attempt
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations
from mpi_trainer.diagnose.finding import Finding
from mpi_trainer.render.frame import Facts
from mpi_trainer.runtime.off_loop import OffLoop
from tests.unit.api.trainers import runtime, train_job

NODES = (("spec", "trainer", "numNodes"), 5000)
NEAR = (("kind",), "TrainingRuntime")


@pytest.mark.parametrize(
    ("job", "held", "beside"),
    [((), (), False), ((NODES,), (), True), ((), (NEAR,), True)],
    ids=["small", "many nodes", "a user's own runtime"],
)
def test_plan_is_made_beside_the_loop_where_it_may_be_long(
    job: tuple[Any, ...],
    held: tuple[Any, ...],
    beside: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """0.7 s of every worker's and of the lease's time for one runtime of 200 KB."""
    threads: list[int] = []

    def noted(*_: Any) -> None:
        threads.append(threading.get_ident())

    monkeypatch.setattr(reconcile, "desired", noted)
    written = train_job(*job)
    whole = msgspec.json.decode(msgspec.json.encode(written), type=StoredJob)
    tools: Any = SimpleNamespace(facts=Facts(), off_loop=OffLoop())
    loop = reconcile.Reconciler(None, tools)  # type: ignore[arg-type]
    given = (
        stored_job.kept_trainjob(whole),
        load.train_job(written).value,
        load.runtime(runtime(*held)),
    )
    plan = asyncio.run(loop._planned(*given[:2], given[2].value))  # type: ignore[arg-type]
    assert plan.rejection is None
    assert len(threads) == 1
    assert (threads[0] != threading.get_ident()) == beside


@pytest.mark.parametrize(
    ("ended_by", "told"), [("LauncherFailed", False), ("DeadlineExceeded", True)]
)
def test_a_job_whose_time_is_over_is_not_told_why_an_earlier_attempt_failed(
    ended_by: str, told: bool
) -> None:
    found = Finding("TimeLimit", "certain", "Time is over", "Raise it.")
    stored = history.to_json((Attempt(1, ended_by, "m", findings=(found,)),)) or ""
    failed = TrainJobCondition(
        type="Failed", status="True", reason="DeadlineExceeded", message="late"
    )
    status = TrainJobStatus(conditions=(failed,))
    decision = TrainJobDecision(status, StatusAnnotations(attempts=stored))
    (shown,) = reconcile._with_cause(decision).status.conditions
    assert ("TimeLimit" in shown.message) is told
