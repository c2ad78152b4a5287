from __future__ import annotations

import json
from typing import Any

import pytest

from mpi_trainer.api.errors import SCREEN, InvalidJob
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from tests.unit.api.building import CONTAINER, POD, ROLES, job


def refusal(text: str) -> InvalidJob:
    with pytest.raises(InvalidJob) as caught:
        load.jobs(text, "f.yaml")
    return caught.value


def test_several_jobs_of_one_file_come_in_order() -> None:
    names = ("b", "a")
    text = "\n---\n".join(json.dumps(job((("metadata", "name"), name))) for name in names)
    assert tuple(one.name for one in load.jobs(text, "f").jobs) == names


def test_same_name_in_two_namespaces_is_no_duplicate() -> None:
    text = "\n---\n".join(json.dumps(job((("metadata", "namespace"), ns))) for ns in "ab")
    assert len(load.jobs(text, "f").jobs) == 2


def test_errors_of_all_documents_are_reported_together_in_file_order() -> None:
    text = "kind: MPIJob\n---\nkind: Pod\napiVersion: v1\n---\nkind: mpijob\napiVersion: x/v1\n"
    lines = str(refusal(text)).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["f.yaml:1:1", "f.yaml:3:1", "f.yaml:6:1"]
    assert "did you mean `MPIJob`?" in lines[2]


def test_what_follows_from_a_structural_error_is_not_reported_twice() -> None:
    text = json.dumps(job(((*POD, "containers"), {"name": "x"})))
    assert len(refusal(text).errors) == 1


def test_errors_and_warnings_are_told_together() -> None:
    text = json.dumps(job(((*CONTAINER, "resource"), {}), (("spec", "slotsPerWorker"), 0)))
    assert str(refusal(text)).splitlines()[1].startswith("warning: f.yaml:1:")


def test_message_fits_one_screen() -> None:
    text = json.dumps(job(*(((*ROLES, f"Role{n}"), {}) for n in range(30))))
    lines = str(refusal(text)).splitlines()
    assert len(lines) == SCREEN + 1
    assert lines[-1] == "and 10 more"
    assert len(refusal(text).errors) == 30


def test_file_without_a_job_is_refused() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    assert "f.yaml:1:1: Required value: the file holds no MPIJob; add one" in str(refusal(text))


def test_wrong_version_of_a_config_map_is_named() -> None:
    text = "apiVersion: v2\nkind: ConfigMap\nmetadata: {name: c}\n"
    assert "write `apiVersion: v1`" in str(refusal(text))


@pytest.mark.parametrize("version", ["v1", "v1alpha1", "v1alpha2"])
def test_legacy_version_has_a_remedy(version: str) -> None:
    """API-4."""
    text = json.dumps(job((("apiVersion",), f"kubeflow.org/{version}")))
    assert "move cleanPodPolicy" in str(refusal(text))


def test_plain_data_of_another_kind_is_no_job() -> None:
    found = load.job({"apiVersion": "v1", "kind": "Secret"})
    assert found.value is None
    assert "kind: Unsupported value" in str(found.errors[0])


@pytest.mark.parametrize("data", [{}, {"kind": 3}, {"apiVersion": "", "kind": "MPIJob"}])
def test_plain_data_without_identity_is_no_job(data: dict[str, Any]) -> None:
    assert load.job(data).value is None


def test_plain_data_of_a_job_gets_its_defaults() -> None:
    value = load.job(job()).value
    assert isinstance(value, MPIJob)
    assert value.spec.mpi_implementation == "OpenMPI"
