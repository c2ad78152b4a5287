"""What exists before a job's first pod, and the end of its key, when calls fail."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.controller.agent_scripts import AgentScripts
from mpi_trainer.controller.dependents import Dependents, WantedDependents
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob.apply import Work, Writer
from mpi_trainer.controller.mpijob.observe import Observation
from mpi_trainer.controller.status_throttle import NOW
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Observed, Record
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Unreachable
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.controller.objects import mpijob
from tests.unit.runtime.fake_api_server import FakeApiServer
from tests.unit.runtime.fake_time import run_in_fake_time

T0 = datetime(2026, 3, 1, tzinfo=UTC)
PI = Key("ns", "pi")
OWNER = Meta(name="pi", namespace="ns", uid="u-pi")
REF = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": "u-pi"}


class Lab:
    def __init__(self) -> None:
        self.server = FakeApiServer()
        client, memories = cast(Client, self.server), JobMemories()
        memories.begin(PI, OWNER.uid)
        self.dependents = Dependents(client, memories, AgentScripts(client, WorkQueue()))
        freshness: Freshness[Key, Any] = Freshness({}, lambda: 0.0)
        self.writer = Writer(client, self.dependents, freshness, WriteConcurrency())

    def expected(self, owner: Meta = OWNER, ended: datetime = T0 + timedelta(hours=1)) -> bool:
        """Long after the controller began, and after the job's end."""
        self.dependents.may_have_key(Meta(), None, T0)
        return self.dependents.may_have_key(owner, ended, T0 + timedelta(hours=2))


def wanted(*hosts: str) -> WantedDependents:
    meta = {"name": "pi-config", "namespace": "ns", "ownerReferences": [REF | {"controller": True}]}
    return WantedDependents({"metadata": meta, "data": {"hosts": " ".join(hosts)}})


def ending(lab: Lab) -> Coroutine[Any, Any, bool]:
    """The write that tells of the job's end."""
    collection = "apis/kubeflow.org/v2beta1/mpijobs"
    lab.server.objects.create(collection, "ns", {"metadata": {"name": "pi"}})
    ended = MPIJobStatus(conditions=(Condition(type="Failed", status="True"),))
    decision = MPIJobDecision(ended, Record())
    return lab.writer.store(
        Work(PI, mpijob(), OWNER, Observation(Observed(), {}), decision, T0, NOW)
    )


def test_a_key_is_still_expected_though_the_answer_to_the_end_was_lost() -> None:
    """AC-19: the job had ended at the next pass, and nobody thought of its key any more."""
    lab = Lab()
    lab.server.mood = "loses"
    with pytest.raises(Unreachable):
        run_in_fake_time(ending(lab))
    assert lab.expected()


def test_a_key_is_still_expected_though_the_pass_was_broken_off() -> None:
    """AC-19: as by its time limit, while the API server hangs."""
    lab = Lab()
    lab.server.mood = "hangs"
    with pytest.raises(TimeoutError):
        run_in_fake_time(asyncio.wait_for(lab.dependents.delete_key(OWNER, "pi-ssh"), 60))
    assert lab.expected()
    lab.server.mood = "well"
    assert run_in_fake_time(lab.dependents.delete_key(OWNER, "pi-ssh"))
    assert not lab.expected()


def test_no_key_is_expected_of_a_job_that_is_gone_nor_of_its_successor() -> None:
    lab = Lab()
    lab.dependents.mark_key_for_deletion(OWNER)
    assert not lab.expected(Meta(name="pi", namespace="ns", uid="u-next"))
    lab.dependents.forget(PI)
    assert not lab.expected()


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-700, False), (-5, True), (5, True), (60, False)]
)
def test_the_clock_of_the_controller_before_may_have_been_ahead(
    seconds: int, expected: bool
) -> None:
    """AC-19: it told of the end, and came no further."""
    lab = Lab()
    assert lab.dependents.may_have_key(OWNER, T0 + timedelta(seconds=seconds), T0) is expected


def test_files_that_were_replaced_only_half_are_made_before_the_next_pod() -> None:
    """C-14: the old ConfigMap was gone and the new one refused; should the job have changed again
    by then, its new workers waited for it for ever."""
    lab = Lab()
    made = ("api/v1/configmaps", "ns", "pi-config")
    run_in_fake_time(lab.dependents.provide(OWNER, wanted("a"), 1))
    assert made in lab.server.objects.objects
    run_in_fake_time(_interrupted(lab))
    run_in_fake_time(lab.dependents.provide(OWNER, wanted("a", "b", "c"), 1))
    assert lab.server.objects.get(made)["data"]["hosts"] == "a b c"


async def _interrupted(lab: Lab) -> None:
    lab.server.delay = 1.0
    with pytest.raises(TimeoutError):  # after the deletion, before the creation
        await asyncio.wait_for(lab.dependents.replace_config_map(OWNER, wanted("a", "b")), 4.5)
    lab.server.delay = 0.0
