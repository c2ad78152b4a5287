"""A TrainJob and its runtime put together. API-2, API-3."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.effective.combine import AUTO, Effective
from mpi_trainer.api.kinds import runtime as runtimes
from mpi_trainer.api.kinds import trainjob
from tests.unit.api.trainers import (
    JOBS,
    LABEL,
    MPI,
    NODES,
    loaded,
    loaded_runtime,
    merged,
    patch,
    plain,
    replicated,
    runtime,
    torch,
    train_job,
)

TRAINER = ("spec", "trainer")
PATCHES = ("spec", "runtimePatches")


def counts(found: Effective) -> dict[str, int]:
    return {job.name: job.count for job in found.jobs}


def container(found: Effective, name: str) -> dict[str, Any]:
    job = next(job for job in found.jobs if job.name == name)
    [only] = job.template.content["spec"]["containers"]
    return dict(only)


@pytest.mark.parametrize(
    ("nodes", "as_node", "wanted"),
    [
        (None, True, {"node": 1, "launcher": 1}),
        (10, True, {"node": 9, "launcher": 1}),
        (2, True, {"node": 1, "launcher": 1}),
        (1, True, {"node": 1, "launcher": 1}),
        (10, False, {"node": 10, "launcher": 1}),
        (1, False, {"node": 1, "launcher": 1}),
    ],
)
def test_counts_of_an_mpi_job_are_those_that_kueue_computes(
    nodes: int | None, as_node: bool, wanted: dict[str, int]
) -> None:
    """API-3: names and counts equal upstream's."""
    job = train_job(((*TRAINER, "numNodes"), nodes)) if nodes is not None else train_job()
    found = merged(job, runtime(((*MPI, "runLauncherAsNode"), as_node)))
    assert counts(found) == wanted
    assert found.nodes == wanted["node"] + as_node


def test_nodes_of_the_template_stand_where_the_job_says_nothing() -> None:
    found = merged(train_job(), runtime(((*JOBS, 0, "template", "spec", "parallelism"), 3)))
    assert counts(found) == {"node": 3, "launcher": 1}


@pytest.mark.parametrize(("wanted", "nodes"), [(None, 4), (2, 2)])
def test_torch_and_plain_jobs_count_by_the_label(wanted: int | None, nodes: int) -> None:
    job = train_job(((*TRAINER, "numNodes"), wanted))
    for template in (torch((NODES, 4)), plain((NODES, 4))):
        found = merged(job, template)
        assert (counts(found), found.nodes) == ({"node": nodes}, nodes)


def test_image_variables_and_resources_reach_launcher_and_workers() -> None:
    """AC-17: upstream gives the workers neither image nor, without runLauncherAsNode, the rest."""
    job = train_job(
        ((*TRAINER, "image"), "example.com/mine:2"),
        ((*TRAINER, "env"), [{"name": "A", "value": "1"}]),
        ((*TRAINER, "resourcesPerNode"), {"limits": {"nvidia.com/gpu": 2}}),
    )
    for as_node in (True, False):
        found = merged(job, runtime(((*MPI, "runLauncherAsNode"), as_node)))
        for name in ("node", "launcher"):
            got = container(found, name)
            assert got["image"] == "example.com/mine:2"
            assert got["env"] == [{"name": "A", "value": "1"}]
            assert got["resources"] == {"limits": {"nvidia.com/gpu": 2}}


def test_command_reaches_the_launcher_only() -> None:
    job = train_job(((*TRAINER, "command"), ["mpirun"]), ((*TRAINER, "args"), ["hostname"]))
    found = merged(job, runtime())
    assert (container(found, "launcher")["command"], container(found, "launcher")["args"]) == (
        ["mpirun"],
        ["hostname"],
    )
    assert "command" not in container(found, "node")
    on_workers = runtime(
        ((*JOBS, 0, "template", "metadata"), {"labels": {LABEL: "trainer"}}),
        ((*JOBS, 1, "template", "metadata"), {}),
    )
    found = merged(job, on_workers)
    assert "command" not in container(found, "node")
    assert container(found, "launcher")["command"] == ["mpirun"]


def test_resources_are_merged_amount_by_amount() -> None:
    template = runtime(
        ((*JOBS, 0), replicated("node", resources={"requests": {"cpu": "1", "memory": "1Gi"}}))
    )
    wanted = {"requests": {"cpu": 4.0}, "limits": {"cpu": 4.0}}
    found = merged(train_job(((*TRAINER, "resourcesPerNode"), wanted)), template)
    assert container(found, "node")["resources"] == {
        "requests": {"cpu": 4.0, "memory": "1Gi"},
        "limits": {"cpu": 4.0},
    }


@pytest.mark.parametrize(
    ("procs", "in_runtime", "resources", "slots"),
    [
        (None, 1, {}, 1),
        (None, 1, {"limits": {"nvidia.com/gpu": "8"}}, 8),
        (None, 1, {"requests": {"nvidia.com/gpu": 4}, "limits": {"nvidia.com/gpu": "4"}}, 4),
        (None, 1, {"limits": {"nvidia.com/mig-1g.5gb": 3}}, 3),
        (None, 2, {"limits": {"nvidia.com/gpu": "8"}}, 2),
        (5, 2, {"limits": {"nvidia.com/gpu": "8"}}, 5),
    ],
)
def test_slots_come_from_the_job_the_runtime_or_the_gpus(
    procs: int | None, in_runtime: int, resources: dict[str, Any], slots: int
) -> None:
    job = train_job(
        ((*TRAINER, "numProcPerNode"), procs), ((*TRAINER, "resourcesPerNode"), resources)
    )
    assert merged(job, runtime(((*MPI, "numProcPerNode"), in_runtime))).slots == slots


@pytest.mark.parametrize(
    ("resources", "slots"),
    [({}, 1), ({"limits": {"cpu": "2500m"}}, 3), ({"limits": {"nvidia.com/gpu": 1}}, AUTO)],
)
def test_torch_counts_cpus_where_there_is_no_gpu(resources: dict[str, Any], slots: int) -> None:
    job = train_job(((*TRAINER, "resourcesPerNode"), resources))
    assert merged(job, torch()).slots == slots


def test_patches_are_merged_in_order_and_the_last_one_wins() -> None:
    job = train_job(
        (
            PATCHES,
            [
                patch("node", "a.io/x", nodeSelector={"zone": "a", "disk": "ssd"}),
                patch("node", "b.io/x", nodeSelector={"zone": "b"}, serviceAccountName="me"),
            ],
        )
    )
    found = merged(job, runtime())
    assert [one.name for one in found.jobs] == ["node", "launcher"]
    spec = found.jobs[0].template.content["spec"]
    assert spec["nodeSelector"] == {"zone": "b", "disk": "ssd"}
    assert spec["serviceAccountName"] == "me"
    assert "nodeSelector" not in found.jobs[1].template.content["spec"]


def test_patch_replaces_tolerations_and_merges_mounts_by_folder() -> None:
    given = replicated("node", volumeMounts=[{"name": "a", "mountPath": "/a", "subPath": "x"}])
    given["template"]["spec"]["template"]["spec"]["tolerations"] = [{"key": "old"}]
    change = patch(
        "node",
        tolerations=[{"key": "new"}],
        volumes=[{"name": "b", "emptyDir": {}}],
        containers=[
            {
                "name": "node",
                "volumeMounts": [
                    {"name": "b", "mountPath": "/b"},
                    {"name": "c", "mountPath": "/a"},
                ],
            }
        ],
    )
    spec = merged(train_job((PATCHES, [change])), runtime(((*JOBS, 0), given))).jobs[0]
    content = spec.template.content["spec"]
    assert content["tolerations"] == [{"key": "new"}]
    assert content["volumes"] == [{"name": "b", "emptyDir": {}}]
    assert content["containers"][0]["volumeMounts"] == [
        {"name": "c", "mountPath": "/a", "subPath": "x"},
        {"name": "b", "mountPath": "/b"},
    ]


def test_patch_labels_the_jobset_and_keeps_what_the_template_has() -> None:
    spec = {"template": {"metadata": {"labels": {"queue": "b"}, "annotations": {"a": "1"}}}}
    job = train_job((PATCHES, [{"manager": "a.io/x", "trainingRuntimeSpec": spec}]))
    template = runtime((("spec", "template", "metadata"), {"labels": {"queue": "a", "team": "x"}}))
    found = merged(job, template)
    assert (found.labels, found.annotations) == ({"queue": "b", "team": "x"}, {"a": "1"})


def test_empty_patch_of_kueue_changes_nothing() -> None:
    """CTL-13."""
    empty = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}
    assert merged(train_job((PATCHES, [empty])), runtime()) == merged(train_job(), runtime())


def test_initializer_gets_its_source_and_secret() -> None:
    given = replicated("dataset-initializer", "dataset-initializer", name="dataset-initializer")
    job = train_job(
        (
            ("spec", "initializer", "dataset"),
            {
                "storageUri": "hf://d",
                "env": [{"name": "A", "value": ""}],
                "secretRef": {"name": "s"},
            },
        )
    )
    found = merged(job, runtime((JOBS, [given, replicated("node"), replicated("launcher")])))
    assert (found.jobs[0].role, found.jobs[0].replicas) == ("dataset-initializer", 1)
    got = container(found, "dataset-initializer")
    assert got["env"] == [{"name": "STORAGE_URI", "value": "hf://d"}, {"name": "A", "value": ""}]
    assert got["envFrom"] == [{"secretRef": {"name": "s"}}]


def test_implementation_comes_from_the_annotation() -> None:
    note = "mpi-trainer.opendatahub.io/mpi-implementation"
    assert merged(train_job(), runtime()).mpi_implementation == "OpenMPI"
    annotated = runtime((("metadata", "annotations"), {note: "MPICH"}))
    assert merged(train_job(), annotated).mpi_implementation == "MPICH"


def test_replicated_job_goes_out_with_all_that_came_and_its_count() -> None:
    given = replicated("node")
    given["template"]["spec"]["backoffLimit"] = 0
    given["template"]["spec"]["template"]["spec"]["future"] = {"x": 1}
    job = train_job(((*TRAINER, "numNodes"), 4))
    wire = merged(job, runtime(((*JOBS, 0), given))).jobs[0].wire()
    assert wire["template"]["spec"]["backoffLimit"] == 0
    assert wire["template"]["spec"]["template"]["spec"]["future"] == {"x": 1}
    assert (wire["template"]["spec"]["parallelism"], wire["replicas"]) == (3, 1)
    assert "template" not in merged(job, runtime()).jobs[0].rest["template"]["spec"]


def test_job_and_runtime_survive_the_way_to_the_wire_and_back() -> None:
    env = [{"name": "A", "valueFrom": {"fileKeyRef": {"path": "x"}}}]
    data = train_job(((*TRAINER, "env"), env), (PATCHES, [patch("node", nodeSelector={"a": "b"})]))
    job = loaded(data)
    assert loaded(trainjob.to_wire(job)) == job
    assert list(trainjob.to_wire(job)["spec"]["trainer"]["env"]) == env
    one = loaded_runtime(runtime((("spec", "template", "spec", "coordinator"), {"podIndex": 0})))
    assert loaded_runtime(runtimes.to_wire(one)) == one
    assert runtimes.to_wire(one)["spec"]["template"]["spec"]["coordinator"] == {"podIndex": 0}
