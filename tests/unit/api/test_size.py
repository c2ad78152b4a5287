"""Specs that are too large or nested too deeply are refused in words, before they are read."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.yaml import load
from tests.unit.api.building import job as mpi_job
from tests.unit.api.trainers import runtime, train_job


def wide(data: dict[str, Any], size: int) -> dict[str, Any]:
    return {**data, "spec": {**data["spec"], "x": "y" * size}}


def deep(data: dict[str, Any], levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner}
    return {**data, "spec": {**data["spec"], "x": inner}}


READERS = [(load.job, mpi_job()), (load.train_job, train_job()), (load.runtime, runtime())]
NAMES = ["MPIJob", "TrainJob", "runtime"]


@pytest.mark.parametrize(("read", "data"), READERS, ids=NAMES)
def test_spec_over_256_kib_is_refused_with_its_size_the_limit_and_what_to_do(
    read: Any, data: Any
) -> None:
    """S-15, W-7."""
    (error,) = read(wide(data, 1_400_000)).errors
    assert error.field == "spec"
    assert "has 1400" in error.rule
    assert f"at most {bounds.SPEC_BYTES} (256 KiB)" in error.rule
    assert "ConfigMap" in error.remedy
    assert not any(e.problem == "Too long" for e in read(wide(data, 1000)).errors)


@pytest.mark.parametrize("levels", [101, 1100, 100_000])
@pytest.mark.parametrize(("read", "data"), READERS, ids=NAMES)
def test_spec_that_is_nested_too_deeply_is_refused(read: Any, data: Any, levels: int) -> None:
    """S-3."""
    (error,) = read(deep(data, levels)).errors
    assert "levels deep, and at most 100 are read" in str(error)


def test_numbers_that_json_cannot_carry_hide_no_size() -> None:
    data = mpi_job()
    huge = {**data, "spec": {**data["spec"], "n": 10**400, "s": "\ud800", "x": "y" * 300_000}}
    (error,) = load.job(huge).errors
    assert error.problem == "Too long"


def test_file_says_where_the_large_spec_is() -> None:
    text = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: a}\nspec:\n  x: "
    with pytest.raises(InvalidJob, match=r"job.yaml:4:1: spec: Too long: has 3000"):
        load.jobs(text + "y" * 300_000, "job.yaml")


@pytest.mark.parametrize(
    "spec",
    [
        {f"field{n}": 1 for n in range(5000)},
        {"runPolicy": {"schedulingPolicy": {f"replicaz{n}": 1 for n in range(5000)}}},
        {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{}] * 5000}}}}},
        {
            "mpiReplicaSpecs": {
                "Launcher": {
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "a",
                                    "image": "b",
                                    "volumeMounts": [
                                        {"name": f"v{n}", "mountPath": f"/{n}"} for n in range(3000)
                                    ],
                                }
                            ]
                        }
                    }
                }
            }
        },
    ],
    ids=["unknown", "near", "empty", "rules"],
)
def test_no_more_is_told_than_anybody_reads(spec: Any) -> None:
    """S-15: 160,000 errors were told of 240 KB."""
    found = load.job({**mpi_job(), "spec": spec})
    assert 0 < len(found.errors) <= 2 * bounds.ERRORS
    assert len(found.warnings) <= 2 * bounds.ERRORS
