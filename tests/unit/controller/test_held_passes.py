"""What stands in the way of a PodGroup or a policy does not stand in the way of all else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.conditions import FAILED, SUCCEEDED, Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.api.kinds.trainjob import TrainJob, TrainJobCondition, TrainJobStatus
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.keeping import Keeping
from mpi_trainer.controller.mpijob import reconcile as mpijob_reconcile
from mpi_trainer.controller.trainjob import reconcile as trainjob_reconcile
from mpi_trainer.controller.trainjob.apply import Work
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Record
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations
from mpi_trainer.kube import errors
from mpi_trainer.kube.errors import NotFound, ServerFault, Status
from mpi_trainer.kube.requests import Request
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.gang import pod_groups, volcano
from mpi_trainer.render.gang.model import GangSettings
from mpi_trainer.runtime.off_loop import OffLoop
from mpi_trainer.runtime.partial import Key, Meta
from tests.unit.controller.objects import BORN, mpijob

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/lab/podgroups"
META = Meta(name="pi", namespace="lab", uid="job", generation=1)
PI = Key("lab", "pi")


class Refusing:
    """Kept children whose group an API server does not take."""

    def __init__(self, code: int) -> None:
        status = Status(code=code, message="no PodGroups today")
        self.error = errors.from_status(Request("POST", GROUPS), status)

    async def keep_all(self, *_: Any) -> None:
        raise self.error


class Noting:
    """A writer that notes what it is told to do."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def note(*_: Any) -> bool:
            self.done.append(name)
            return name != "store"

        return note


def mpijob_pass(code: int, decision: MPIJobDecision) -> tuple[list[str], str]:
    """What is done of the decision, and what is told as the reason that pods are missing."""
    memories, writer = JobMemories(), Noting()
    memories.begin(PI, "job")
    tools: Any = SimpleNamespace(
        writer=writer,
        kept=Refusing(code),
        memories=memories,
        facts=Facts(),
        clock=lambda: datetime.now(UTC),
    )
    work: Any = SimpleNamespace(
        key=PI, job=mpijob(), metadata=META, decision=decision, status_wait=None
    )
    loop = mpijob_reconcile.Reconciler(None, tools)  # type: ignore[arg-type]
    owned: Any = SimpleNamespace(launchers=())
    with pytest.raises((NotFound, ServerFault), match="no PodGroups today"):
        asyncio.run(loop._carry_out(work, owned))
    return writer.done, memories.part("job", Keeping).refusal


@pytest.mark.parametrize("end", [SUCCEEDED, FAILED])
def test_the_end_of_an_mpijob_is_stored_though_its_group_cannot_be_deleted(end: str) -> None:
    status = MPIJobStatus(conditions=(Condition(type=end, status="True"),))
    done, _ = mpijob_pass(500, MPIJobDecision(status, Record()))
    assert done == ["store", "clear", "free"]


def test_no_pod_of_an_mpijob_is_made_without_its_group_and_it_says_why() -> None:
    """As where the definition of PodGroups was deleted."""
    decision = MPIJobDecision(MPIJobStatus(), Record(), start_workers=(0, 1))
    done, told = mpijob_pass(404, decision)
    assert done == ["store", "clear", "free"]
    assert "no PodGroups today" in told


def trainjob_loop(kept: Any, writer: Any, *, elder: bool) -> trainjob_reconcile.Reconciler:
    memories = JobMemories()
    memories.begin(PI, "job")
    tools: Any = SimpleNamespace(
        writer=writer,
        kept=kept,
        memories=memories,
        facts=Facts(),
        clock=lambda: datetime.now(UTC),
        concurrency=WriteConcurrency(),
    )
    stores: Any = SimpleNamespace(has_elder=lambda *_: elder)
    return trainjob_reconcile.Reconciler(stores, tools)


def trainjob_work(decision: TrainJobDecision) -> Work:
    return Work(PI, TrainJob(metadata=mpijob().metadata), META, None, decision, BORN)


def wanted() -> Any:
    effective = SimpleNamespace(policy="torch", job=lambda _: None)
    return SimpleNamespace(effective=effective, children=SimpleNamespace(gang=None))


def trainjob_pass(decision: TrainJobDecision) -> list[str]:
    writer = Noting()
    loop = trainjob_loop(Refusing(500), writer, elder=False)
    with pytest.raises(ServerFault):
        asyncio.run(loop._carry_out(trainjob_work(decision), wanted()))
    return writer.done


def test_the_end_of_a_trainjob_is_stored_though_its_group_cannot_be_deleted() -> None:
    ended = TrainJobStatus(conditions=(TrainJobCondition(type="Failed", status="True"),))
    assert trainjob_pass(TrainJobDecision(ended, StatusAnnotations())) == ["store", "delete_key"]


def test_a_trainjob_whose_group_is_refused_is_stopped_and_never_started() -> None:
    nothing = TrainJobDecision(TrainJobStatus(), StatusAnnotations())
    replace = msgspec.structs.replace
    assert "remove" in trainjob_pass(replace(nothing, remove=True))
    assert "set_suspended" in trainjob_pass(replace(nothing, suspend=True))
    assert "create" not in trainjob_pass(replace(nothing, make=True))
    assert "set_suspended" not in trainjob_pass(replace(nothing, suspend=False))


def test_a_trainjob_takes_no_name_from_an_mpijob_that_was_there_first() -> None:
    """Their PodGroups and policies have the same names, and the MPIJob would fail."""
    kept, writer = Noting(), Noting()
    loop = trainjob_loop(kept, writer, elder=True)
    make = TrainJobDecision(TrainJobStatus(), StatusAnnotations(), make=True)
    again = asyncio.run(loop._carry_out(trainjob_work(make), wanted()))
    assert again.after == 0.0
    assert kept.done == []
    assert "create" not in writer.done


def test_the_group_of_an_mpijob_is_made_once_for_each_state_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A template of 240 KB took 40 ms of every worker's and of the lease's time in each pass."""
    made: list[Any] = []
    monkeypatch.setattr(pod_groups, "of_mpijob", lambda *_: made.append(1))
    memories, job = JobMemories(), mpijob()
    memories.begin(PI, "job")
    facts = Facts(gang=GangSettings(volcano.NAME, frozenset({volcano.SCHEDULER.group})))
    tools: Any = SimpleNamespace(memories=memories, facts=facts, off_loop=OffLoop())
    loop = mpijob_reconcile.Reconciler(None, tools)  # type: ignore[arg-type]
    replace = msgspec.structs.replace

    async def passes() -> None:
        await loop._gang(job)
        await loop._gang(job)
        assert len(made) == 1
        await loop._gang(replace(job, metadata=replace(job.metadata, generation=7)))
        queued = replace(job.metadata, generation=7, annotations={volcano.QUEUE: "research"})
        await loop._gang(replace(job, metadata=queued))
        assert len(made) == 3

    asyncio.run(passes())
