"""MIG-1, MIG-2, API-4: what files hold, and what is told of those that hold something else."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml

from mpi_trainer.api.errors import InvalidJob, line
from mpi_trainer.migrate.sources import Migrated, Target, migrated, together
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_clouds import AZURE, REQUEST
from tests.unit.migrate.test_legacy import ALPHA, V1


def kinds(found: Migrated) -> list[str]:
    return [one["kind"] for job in found.jobs for one in job.objects]


def text(*documents: Any) -> str:
    return yaml.safe_dump_all(documents)


def test_a_file_of_many_documents_passes_over_what_is_no_job() -> None:
    """As Helm renders one."""
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    strange = {"apiVersion": "example.com/v1", "kind": "MPIJob", "metadata": {"name": "x"}}
    whole = f"# Source: chart/a.yaml\n---\n# nothing\n---\n{text(other, base(), strange, {'a': 1})}"
    found = migrated(whole, "chart.yaml")
    assert kinds(found) == ["TrainingRuntime", "TrainJob"]
    assert found.passed == {"Deployment": 1, "MPIJob": 1, "unknown": 1}


def test_a_list_is_looked_into() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [base(), V1]}
    assert kinds(migrated(json.dumps(listed), "x")) == ["TrainingRuntime", "TrainJob", "MPIJob"]


@pytest.mark.parametrize(
    ("source", "to", "wanted"),
    [
        (base(), None, ["TrainingRuntime", "TrainJob"]),
        (base(), "mpijob", []),
        (V1, None, ["MPIJob"]),
        (V1, "trainjob", ["TrainingRuntime", "TrainJob"]),
        (ALPHA, "trainjob", ["TrainingRuntime", "TrainJob"]),
        (REQUEST, None, ["MPIJob"]),
        (REQUEST, "trainjob", ["TrainingRuntime", "TrainJob"]),
        (AZURE, "mpijob", ["MPIJob"]),
        (AZURE, "trainjob", ["TrainingRuntime", "TrainJob"]),
    ],
)
def test_the_target_can_be_chosen(source: Any, to: Target | None, wanted: list[str]) -> None:
    found = migrated(text(source), "x", to)
    assert found.sound
    assert kinds(found) == wanted
    for job in found.jobs:
        assert bool(job.through) is ("TrainJob" in wanted)


def test_what_changed_on_the_second_way_is_told_as_of_the_job_between() -> None:
    (job,) = migrated(text(V1), "x", "trainjob").jobs
    between = [one for one in job.fields if one.of]
    assert {one.of for one in between} == {"MPIJob"}
    assert "carried" not in {one.fate for one in between}


def test_one_machine_of_a_cloud_cannot_become_a_trainjob_and_says_so() -> None:
    alone = {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 1}
    (job,) = migrated(text(REQUEST | {"ResourceConfig": alone}), "x", "trainjob").jobs
    assert (job.objects, job.effort) == ((), "blocked")
    assert "one worker at least" in str(job.errors[0])


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("kind: MPIJob\n  bad: [", "x.yaml:2:"),
        ("- a\n- b\n", "a document must be a mapping"),
        ("{{ if .Values.x }}\nkind: MPIJob\n{{ end }}", "x.yaml:1:"),
        ("kind: MPIJob\nkind: MPIJob\n", "x.yaml:2:"),
        ("\x00\x01", "x.yaml:1:"),
        ("a: " + "[" * 500, "x.yaml:1:"),
    ],
)
def test_text_that_is_no_yaml_is_refused_with_its_place(broken: str, words: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        migrated(broken, "x.yaml")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("document", "field", "place"),
    [
        ("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x}\n",
         "spec.mpiReplicaSpecs", "x.yaml:1:1"),
        ("kind: MPIJob\nmetadata: {name: x}\n", "apiVersion", "x.yaml:1:1"),
        ("apiVersion: kubeflow.org/v3\nkind: MPIJob\n", "apiVersion", "x.yaml:1:1"),
        ("apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec: {mpiReplicaSpecs: 3}\n",
         "spec.mpiReplicaSpecs", "x.yaml:3:8"),
        ("apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: 3\nspec: []\n", "metadata",
         "x.yaml:3:1"),
        ("TrainingJobName: a\nRoleArn: b\n", "AlgorithmSpecification.TrainingImage", "x.yaml:1:1"),
        ("TrainingJobName: a\nResourceConfig: {InstanceCount: a}\n",
         "ResourceConfig.InstanceCount", "x.yaml:2:18"),
        ("command: a\ndistribution: 3\n", "distribution", "x.yaml:2:1"),
        ("command: [a]\ntype: command\n", "command", "x.yaml:1:1"),
    ],
)  # fmt: skip
def test_a_partial_job_is_told_with_field_place_and_remedy(
    document: str, field: str, place: str
) -> None:
    (job,) = migrated(document, "x.yaml").jobs
    assert job.objects == ()
    told = {one.field: one for one in job.errors}
    assert field in told
    assert line(told[field]).startswith(place)
    assert told[field].remedy


def test_a_spec_that_is_too_large_or_too_deep_is_refused() -> None:
    job = base()
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"] = [
        "x" * 300_000
    ]
    (large,) = migrated(json.dumps(job), "x").jobs
    assert "at most" in str(large.errors[0])
    old = {**V1, "spec": {**V1["spec"], "mainContainer": "y" * 300_000}}
    (older,) = migrated(json.dumps(old), "x").jobs
    assert "at most" in str(older.errors[0])


def seconds(jobs: int) -> float:
    several = []
    for n in range(jobs):
        job = base()
        job["metadata"]["name"] = f"train-{n}"
        several.append(job)
    whole = text(*several)
    begin = time.process_time()
    assert migrated(whole, "x").sound
    return time.process_time() - begin


def test_time_grows_with_the_size_of_the_file_and_no_faster() -> None:
    """Eight times the jobs; a square would be sixty-four times as long."""
    seconds(5)
    few = min(seconds(10) for _ in range(3))
    assert seconds(80) < few * 8 * 5


def test_a_job_of_very_many_fields_is_read_in_linear_time() -> None:
    def spent(fields: int) -> float:
        request = REQUEST | {"HyperParameters": dict(REQUEST["HyperParameters"])}
        request["HyperParameters"] |= {f"p{n}": "1" for n in range(fields)}
        request |= {f"Field{n}": {"a": [1, 2]} for n in range(fields)}
        whole = json.dumps(request)
        begin = time.process_time()
        migrated(whole, "x")
        return time.process_time() - begin

    spent(10)
    few = min(spent(200) for _ in range(3))
    assert spent(1600) < few * 8 * 5


def test_two_jobs_of_one_name_are_told_before_one_replaces_the_other() -> None:
    found = together([migrated(text(base()), "a"), migrated(text(base()), "b")])
    first, second = found.jobs
    assert first.objects
    assert [one.field for one in second.errors] == ["metadata.name"]
