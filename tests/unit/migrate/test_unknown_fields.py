"""API-4, MIG-1: what files hold that no version of the API has."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mpi_trainer.migrate.report import Converted
from mpi_trainer.migrate.sources import converted
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_legacy import ALPHA, V1


def found(job: dict[str, Any]) -> Converted:
    made = converted(job, "trainjob")
    assert made is not None
    return made


@pytest.mark.parametrize("job", [base(), V1, ALPHA], ids=["v2beta1", "v1", "v1alpha1"])
def test_what_an_older_kubectl_printed_is_converted(job: dict[str, Any]) -> None:
    """clusterName was in every object until Kubernetes 1.24, selfLink until 1.20."""
    old = copy.deepcopy(job)
    old["metadata"] |= {"clusterName": "", "initializers": None, "selfLink": "/apis/x"}
    made = found(old)
    assert made.errors == ()
    assert [one.fate for one in made.fields if one.field == "metadata.clusterName"] == ["lost"]
    assert made.objects == found(job).objects


def test_a_field_that_no_version_has_is_left_out_and_told() -> None:
    job = base(waitForWorkers=True)
    made = found(job)
    assert made.objects == found(base()).objects
    (told,) = (one for one in made.fields if one.field == "spec.waitForWorkers")
    assert (told.fate, "API servers leave it out" in told.note) == ("lost", True)


def test_a_policy_of_v1_at_its_old_place_in_v2beta1_is_told_with_its_new_one() -> None:
    made = found(base(cleanPodPolicy="All"))
    (told,) = (one for one in made.fields if one.field == "spec.cleanPodPolicy")
    assert (told.fate, "spec.runPolicy.cleanPodPolicy" in told.remedy) == ("lost", True)


def test_a_slip_of_the_pen_is_still_an_error() -> None:
    """Without its 8 slots it would be another job."""
    job = base(slotPerWorker=8)
    del job["spec"]["slotsPerWorker"]
    (error,) = found(job).errors
    assert (error.field, error.remedy) == ("spec.slotPerWorker", "did you mean `slotsPerWorker`?")


def test_all_is_told_where_more_is_wrong_than_unknown_fields() -> None:
    job = base(waitForWorkers=True)
    del job["spec"]["mpiReplicaSpecs"]["Launcher"]
    fields = [one.field for one in found(job).errors]
    assert fields[0] == "spec.waitForWorkers"
    assert any("Launcher" in field for field in fields[1:])


def test_a_job_that_is_there_is_not_changed_in_place() -> None:
    job = base(waitForWorkers=True)
    before = copy.deepcopy(job)
    found(job)
    assert job == before
