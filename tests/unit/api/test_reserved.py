"""Marks that only controllers set: refused in templates, left out of what is rendered (S-11)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller.decoded_jobs import DecodedJobs
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob.desired import desired
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.trainjob.children import rendered
from tests.unit.api.building import changed, job
from tests.unit.api.trainers import runtime, train_job

STOLEN = {
    "mpi-trainer.opendatahub.io/trainjob": "victim",
    "jobset.sigs.k8s.io/jobset-uid": "u",
    "batch.kubernetes.io/controller-uid": "u",
    "training.kubeflow.org/another": "victim",
}
FREE = {"kueue.x-k8s.io/podset": "a", "team": "b", "alpha.jobset.sigs.k8s.io/exclusive": "rack"}
WORKER = ("spec", "mpiReplicaSpecs", "Worker", "template", "metadata")
PATCHES = ("spec", "runtimePatches")


def marked(marks: dict[str, str]) -> dict[str, Any]:
    meta = {"labels": marks, "annotations": marks}
    return changed(job(), [(WORKER, meta)])


def patched(marks: dict[str, str], *, pod: bool) -> dict[str, Any]:
    meta = {"metadata": {"labels": marks, "annotations": marks}}
    inside = {"spec": {"template": meta}} if pod else meta
    jobs = {"replicatedJobs": [{"name": "node", "template": inside}]}
    one = {"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": jobs}}}
    return changed(train_job(), [(PATCHES, [one])])


@pytest.mark.parametrize("key", STOLEN)
def test_a_job_that_brings_a_controllers_marks_is_refused_with_field_and_remedy(key: str) -> None:
    """S-11"""
    for data in (marked({key: "x"}), patched({key: "x"}, pod=True), patched({key: "x"}, pod=False)):
        read = load.job if data["kind"] == "MPIJob" else load.train_job
        said = [str(error) for error in read(data).errors]
        assert len(said) == 2
        assert all(key in one and "only controllers set" in one for one in said)


def test_what_users_queues_and_jobset_write_is_taken() -> None:
    assert load.job(marked(FREE)).errors == ()
    assert load.train_job(patched(FREE, pod=True)).errors == ()
    own = {"training.kubeflow.org/job-role": "of-the-user"}
    labels = (*WORKER, "labels")
    assert load.job(changed(job(), [(labels, own)])).errors == ()


def test_a_job_that_was_taken_before_the_rule_runs_on_without_the_marks() -> None:
    """The controller refuses no job for it: what it renders has none of them."""
    data = marked({**STOLEN, **FREE})
    stored = StoredJob(spec=msgspec.Raw(msgspec.json.encode(data["spec"])))
    stored = msgspec.structs.replace(
        stored, metadata=msgspec.convert({"name": "pi"}, type(stored.metadata))
    )
    loaded = DecodedJobs(MPIJob, load.job, JobMemories()).load(stored)
    assert loaded.errors == ()
    (worker, *_) = desired(loaded.job, Facts()).children.workers
    meta = worker["metadata"]
    assert FREE.items() <= meta["labels"].items()
    assert STOLEN.keys().isdisjoint((*meta["labels"], *meta["annotations"]))


def test_a_runtimes_marks_are_told_and_left_out() -> None:
    node = ("spec", "template", "spec", "replicatedJobs", 1, "template")
    meta = {"labels": STOLEN, "annotations": STOLEN}
    data = changed(
        runtime(), [((*node, "metadata"), meta), ((*node, "spec", "template", "metadata"), meta)]
    )
    found, asked = load.runtime(data), load.train_job(train_job()).value
    assert found.errors == ()
    assert sum("only controllers set" in str(one) for one in found.warnings) == 4 * len(STOLEN)
    assert isinstance(found.value, Runtime)
    assert isinstance(asked, TrainJob)
    for one in rendered(asked, found.value, Facts()).children.job_set["spec"]["replicatedJobs"]:
        template = one["template"]
        for where in (template.get("metadata") or {}, template["spec"]["template"]["metadata"]):
            marks = {**(where.get("labels") or {}), **(where.get("annotations") or {})}
            left = {key: value for key, value in marks.items() if key in STOLEN}
            assert left.items() <= {"mpi-trainer.opendatahub.io/trainjob": asked.name}.items()
