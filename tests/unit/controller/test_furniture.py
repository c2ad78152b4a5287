"""What stands before a job's first pod, and its key that goes at its end, on bad days."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import JobStatus
from mpi_trainer.controller.agent_scripts import AgentScripts
from mpi_trainer.controller.dependents import Dependents, WantedDependents
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob.apply import Work, Writer
from mpi_trainer.controller.mpijob.observe import Observation
from mpi_trainer.controller.status import Leisure
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Observed, Record
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Unreachable
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.controller.objects import mpijob
from tests.unit.runtime.faketime import play
from tests.unit.runtime.paper import Paper

T0 = datetime(2026, 3, 1, tzinfo=UTC)
PI = Key("ns", "pi")
OWNER = Meta(name="pi", namespace="ns", uid="u-pi")
REF = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "u-pi"}


class Lab:
    def __init__(self) -> None:
        self.paper = Paper()
        client, memories = cast(Client, self.paper), JobMemories()
        memories.begin(PI, OWNER.uid)
        self.furniture = Dependents(client, memories, AgentScripts(client, WorkQueue()))
        freshness: Freshness[Key, Any] = Freshness({}, lambda: 0.0)
        self.hands = Writer(client, self.furniture, freshness, WriteConcurrency())

    def owes(self, owner: Meta = OWNER, ended: datetime = T0 + timedelta(hours=1)) -> bool:
        """Long after the controller began, and after the job's end."""
        self.furniture.owes_key(Meta(), None, T0)
        return self.furniture.owes_key(owner, ended, T0 + timedelta(hours=2))


def pieces(*hosts: str) -> WantedDependents:
    meta = {"name": "pi-config", "namespace": "ns", "ownerReferences": [REF | {"controller": True}]}
    return WantedDependents({"metadata": meta, "data": {"hosts": " ".join(hosts)}})


def ending(lab: Lab) -> Coroutine[Any, Any, bool]:
    """The write that tells of the job's end."""
    collection = "apis/kubeflow.org/v2beta1/mpijobs"
    lab.paper.objects.create(collection, "ns", {"metadata": {"name": "pi"}})
    ended = JobStatus(conditions=(Condition(type="Failed", status="True"),))
    decision = MPIJobDecision(ended, Record())
    return lab.hands.store(
        Work(PI, mpijob(), OWNER, Observation(Observed(), {}), decision, T0, Leisure(T0))
    )


def test_a_key_is_owed_though_the_answer_to_the_end_was_lost() -> None:
    """AC-19: the job had ended at the next look, and nobody thought of its key any more."""
    lab = Lab()
    lab.paper.mood = "loses"
    with pytest.raises(Unreachable):
        play(ending(lab))
    assert lab.owes()


def test_a_key_is_owed_though_the_look_was_broken_off() -> None:
    """AC-19: as by its time limit, while the API server hangs."""
    lab = Lab()
    lab.paper.mood = "hangs"
    with pytest.raises(TimeoutError):
        play(asyncio.wait_for(lab.furniture.take_key(OWNER, "pi-ssh"), 60))
    assert lab.owes()
    lab.paper.mood = "well"
    assert play(lab.furniture.take_key(OWNER, "pi-ssh"))
    assert not lab.owes()


def test_nothing_is_owed_of_a_job_that_is_gone_nor_of_its_successor() -> None:
    lab = Lab()
    lab.furniture.owe_key(OWNER)
    assert not lab.owes(Meta(name="pi", namespace="ns", uid="u-next"))
    lab.furniture.forget(PI)
    assert not lab.owes()


@pytest.mark.parametrize(("seconds", "owes"), [(-700, False), (-5, True), (5, True), (60, False)])
def test_the_clock_of_the_controller_before_may_have_been_ahead(seconds: int, owes: bool) -> None:
    """AC-19: it told of the end, and came no further."""
    lab = Lab()
    assert lab.furniture.owes_key(OWNER, T0 + timedelta(seconds=seconds), T0) is owes


def test_files_that_were_replaced_only_half_are_made_before_the_next_pod() -> None:
    """C-14: the old ConfigMap was gone and the new one refused; should the job have changed again
    by then, its new workers waited for it for ever."""
    lab = Lab()
    made = ("api/v1/configmaps", "ns", "pi-config")
    play(lab.furniture.provide(OWNER, pieces("a"), 1))
    assert made in lab.paper.objects.objects
    play(_interrupted(lab))
    play(lab.furniture.provide(OWNER, pieces("a", "b", "c"), 1))
    assert lab.paper.objects.get(made)["data"]["hosts"] == "a b c"


async def _interrupted(lab: Lab) -> None:
    lab.paper.delay = 1.0
    with pytest.raises(TimeoutError):  # after the deletion, before the creation
        await asyncio.wait_for(lab.furniture.follow(OWNER, pieces("a", "b")), 4.5)
    lab.paper.delay = 0.0
