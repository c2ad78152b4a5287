"""Admission knows the administrator's default for networks (CTL-6, AC-13)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds.annotations import NETWORK_POLICY
from mpi_trainer.api.kinds.network_isolation import NO_DEFAULT, IsolationDefault
from mpi_trainer.api.validation.worker_limits import DEFAULT
from mpi_trainer.webhook.mpijob.judge import judge
from mpi_trainer.webhook.review import AdmissionRequest
from mpi_trainer.webhook.trainjob.judge import judge_with_runtime
from tests.unit.api.building import POD, POLICY, job
from tests.unit.api.trainers import loaded, loaded_runtime, runtime, train_job
from tests.unit.webhook.test_mpijob_judge import request

CLOSED = IsolationDefault("restricted", "none")
NODE = ((*POD, "hostNetwork"), True)
OPEN = (("metadata", "annotations"), {NETWORK_POLICY: "none"})
SUSPENDED = ((*POLICY, "suspend"), True)
OF_RUNTIME = ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template")


def judged(asked: AdmissionRequest, default: IsolationDefault = CLOSED) -> list[str]:
    return [str(error) for error in judge(asked, DEFAULT, default).errors]


def test_a_job_in_the_node_s_network_is_refused_before_it_exists() -> None:
    (said,) = judged(request(job(NODE)))
    assert said.startswith("spec.mpiReplicaSpecs.Worker.template.spec.hostNetwork: Forbidden")
    assert "this cluster closes the network of every job without" in said
    assert f"or set {NETWORK_POLICY} to none" in said


def test_a_job_that_says_so_may_stay_open() -> None:
    assert judged(request(job(NODE, OPEN))) == []
    assert judged(request(job(NODE)), NO_DEFAULT) == []


def test_a_change_may_not_move_a_job_into_the_node_s_network() -> None:
    """The controller asks it of new jobs alone."""
    (said,) = judged(request(job(SUSPENDED, NODE), job(SUSPENDED)))
    assert "hostNetwork: Forbidden" in said


def test_a_job_that_was_there_before_the_default_stays_changeable() -> None:
    old, new = job(NODE, SUSPENDED), job(NODE, ((*POLICY, "suspend"), False))
    assert judged(request(new, old)) == []


def of_trainjob(new: dict[str, Any], old: dict[str, Any] | None = None, *changes: Any) -> list[str]:
    before = None if old is None else loaded(old)
    made = loaded_runtime(runtime(*changes))
    return [str(e) for e in judge_with_runtime(loaded(new), made, before, DEFAULT, CLOSED).errors]


def test_a_trainjob_whose_runtime_is_in_the_node_s_network_is_refused() -> None:
    (said,) = of_trainjob(train_job(), None, ((*OF_RUNTIME, "spec", "hostNetwork"), True))
    assert said.startswith("spec.runtimeRef.name: Forbidden")
    assert "this cluster closes the network" in said


@pytest.mark.parametrize("suspend", [True, False])
def test_a_trainjob_from_before_may_start_and_stop(suspend: bool) -> None:
    old, new = train_job((("spec", "suspend"), not suspend)), train_job()
    assert of_trainjob(new, old, ((*OF_RUNTIME, "spec", "hostNetwork"), True)) == []
