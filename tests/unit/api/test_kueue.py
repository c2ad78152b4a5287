"""A job that is made anew has nothing of what Kueue wrote into the old one (AC-12)."""

from __future__ import annotations

import copy
from typing import Any

from mpi_trainer.api.kinds import kueue
from tests.unit.api.building import changed, job

ROLE = ("spec", "mpiReplicaSpecs", "Worker", "template")
WRITTEN = [
    ((*ROLE, "spec", "nodeSelector"), {"pool": "mine", "flavor": "a100"}),
    ((*ROLE, "spec", "tolerations"), [{"key": "mine"}, {"key": "flavor"}]),
    ((*ROLE, "spec", "schedulingGates"), [{"name": "kueue.x-k8s.io/topology"}]),
    ((*ROLE, "metadata", "labels"), {"team": "x", "kueue.x-k8s.io/podset": "worker"}),
    ((*ROLE, "metadata", "annotations"), {"kueue.x-k8s.io/workload": "w"}),
]
BEFORE: dict[str, dict[str, Any]] = {
    "worker": {"spec": {"nodeSelector": {"pool": "mine"}, "tolerations": [{"key": "mine"}]}},
    "launcher": {"spec": {}},
}


def admitted() -> dict[str, Any]:
    return dict(changed(job(), WRITTEN)["spec"])


def worker(spec: dict[str, Any]) -> dict[str, Any]:
    return dict(spec["mpiReplicaSpecs"]["Worker"]["template"])


def test_with_its_workload_it_is_as_the_user_wrote_it() -> None:
    spec = admitted()
    found = worker(kueue.without_admission(spec, BEFORE))
    assert found["metadata"] == {"labels": {"team": "x"}}
    assert found["spec"]["nodeSelector"] == {"pool": "mine"}
    assert found["spec"]["tolerations"] == [{"key": "mine"}]
    assert "schedulingGates" not in found["spec"]
    assert spec == admitted(), "nothing is changed in place"


def test_without_its_workload_what_kueue_has_marked_goes() -> None:
    found = worker(kueue.without_admission(admitted(), {}))
    assert found["metadata"] == {"labels": {"team": "x"}}
    assert found["spec"]["nodeSelector"] == {"pool": "mine", "flavor": "a100"}


def test_what_the_user_changes_in_a_copy_stays() -> None:
    mine = copy.deepcopy(admitted())
    mine["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {"pool": "new"}
    found = worker(kueue.without_admission(mine, BEFORE, admitted()))
    assert found["spec"]["nodeSelector"] == {"pool": "new"}
    assert found["spec"]["tolerations"] == [{"key": "mine"}]


def test_odd_specs_are_left_alone() -> None:
    alone: dict[str, Any] = {"mpiReplicaSpecs": {"Worker": {"template": 1}}}
    for odd in ({}, {"mpiReplicaSpecs": None}, alone):
        assert kueue.without_admission(odd, BEFORE) == odd
