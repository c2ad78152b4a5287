"""`odh diff` of TrainJobs against a real API server with our controller: the program itself."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.managers import KUEUE
from tests.api.admin import Admin, Object
from tests.api.odh import Odh
from tests.api.running import Controller
from tests.api.trainjob_lab import (
    TRAIN,
    admin,
    api_server,
    controller,
    job_set,
    mpi_runtime,
    replicated,
    submit,
    train_job,
)

__all__ = ["admin", "api_server", "controller"]

DIFFERENT, TROUBLE = 1, 2


def diff(admin: Admin, *objects: Object, code: int = 0) -> subprocess.CompletedProcess[str]:
    odh = Odh(admin.spec.kubeconfig, admin.namespace)
    text = "\n---\n".join(json.dumps(one) for one in objects)
    return odh("diff", "-f", "-", "-o", "json", data=text, code=code)


def told(admin: Admin, *objects: Object) -> dict[str, Any]:
    listed = json.loads(diff(admin, *objects, code=DIFFERENT).stdout)
    return {f"{one['kind']}/{one['name']}": one for one in listed}


def tolerating(manager: str, toleration: Object) -> Object:
    """One manager's patch of the nodes."""
    pod = {"template": {"spec": {"tolerations": [toleration]}}}
    jobs = [{"name": "node", "template": {"spec": pod}}]
    template = {"spec": {"replicatedJobs": jobs}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def test_a_job_that_is_not_there_would_be_created_with_all_its_objects(admin: Admin) -> None:
    found = told(admin, train_job())
    assert list(found) == [
        "trainjob/pi",
        "configmap/pi-runtime-snapshot",
        "configmap/pi-mpi-hostfile",
        "secret/pi-mpi-ssh-auth",
        "jobset/pi",
    ]
    assert {one["state"] for one in found.values()} == {"would be created"}


def test_nothing_differs_once_the_controller_has_made_all(
    admin: Admin, controller: Controller
) -> None:
    """Defaults, what is stored of amounts, and the controller's own notes are no differences."""
    resources = {"resourcesPerNode": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}}
    job = train_job(trainer=resources)
    submit(admin, job)
    job_set(admin)
    assert diff(admin, mpi_runtime(), job).stdout.strip() == "[]"


def test_every_change_is_told_where_it_takes_effect(admin: Admin, controller: Controller) -> None:
    submit(admin, train_job(trainer={"env": [{"name": "A", "value": "1"}]}))
    job_set(admin)
    found = told(admin, train_job(trainer={"numNodes": 3}))
    changes = {c["field"]: c for c in found["trainjob/pi"]["changes"]}
    assert changes["spec.trainer.numNodes"] == {
        "field": "spec.trainer.numNodes",
        "cluster": 2,
        "file": 3,
    }
    assert any(name.startswith("spec.trainer.env") for name in changes)
    fields = {c["field"] for c in found["configmap/pi-mpi-hostfile"]["changes"]}
    assert "data.hostfile" in fields
    fields = {c["field"] for c in found["jobset/pi"]["changes"]}
    assert any(name.endswith("parallelism") for name in fields)
    assert not any("rendered" in name for name in fields)


def test_a_job_that_has_begun_keeps_its_runtime(admin: Admin, controller: Controller) -> None:
    """CTL-13: the edit is told of the runtime, and of nothing that the job has."""
    job = train_job()
    submit(admin, job)
    job_set(admin)
    edited = mpi_runtime()
    edited["spec"]["template"]["spec"]["replicatedJobs"][0] = replicated("node", image="y")
    found = told(admin, edited, job)
    assert list(found) == ["trainingruntime/mpi"]
    (change,) = found["trainingruntime/mpi"]["changes"]
    assert change["field"].startswith("spec.template.spec.replicatedJobs.node.")
    assert change["field"].endswith(".image")
    assert (change["cluster"], change["file"]) == ("x", "y")


def test_the_file_s_runtime_is_what_a_new_job_would_get(admin: Admin) -> None:
    own = mpi_runtime("own")
    found = told(admin, own, train_job(runtime="own"))
    assert list(found)[:2] == ["trainingruntime/own", "trainjob/pi"]


def test_what_kueue_put_into_a_job_is_no_difference(admin: Admin, controller: Controller) -> None:
    """Neither in the job nor in the JobSet that is made of both."""
    own, theirs = {"key": "own", "operator": "Exists"}, {"key": "theirs", "operator": "Exists"}
    job = train_job()
    job["spec"]["runtimePatches"] = [tolerating("example.com/me", own)]
    both = [*job["spec"]["runtimePatches"], tolerating(KUEUE, theirs)]
    submit(admin, {**job, "spec": {**job["spec"], "runtimePatches": both}})
    assert '"theirs"' in json.dumps(job_set(admin)["spec"])
    assert diff(admin, job).stdout.strip() == "[]"


def test_that_kueue_holds_a_job_of_a_queue_is_no_difference(
    admin: Admin, controller: Controller
) -> None:
    """Neither in the job nor in its JobSet; of a job of no queue it is one."""
    job = train_job()
    queued = {**job["metadata"], "labels": {LABEL_QUEUE: "team"}}
    submit(admin, {**job, "metadata": queued, "spec": {**job["spec"], "suspend": True}})
    assert job_set(admin)["spec"]["suspend"] is True
    assert diff(admin, {**job, "metadata": queued}).stdout.strip() == "[]"
    admin.patch(f"{TRAIN}/trainjobs/pi", {"metadata": {"labels": {LABEL_QUEUE: None}}})
    found = told(admin, job)
    assert [c["field"] for c in found["trainjob/pi"]["changes"]] == ["spec.suspend"]


def test_a_runtime_that_is_nowhere_is_named_with_what_to_do(admin: Admin) -> None:
    ended = diff(admin, train_job(runtime="none"), code=TROUBLE)
    assert "there is no TrainingRuntime none" in ended.stderr
    assert "spec.runtimeRef" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert admin.get(f"{TRAIN}/trainjobs/pi") is None
