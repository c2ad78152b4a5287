"""The runtime that a TrainJob began with: kept, and not to be forged (CTL-13, S-5)."""

from __future__ import annotations

import json

from mpi_trainer.api.kinds.annotations import RUNTIME_SNAPSHOT
from tests.api.admin import Admin, Object
from tests.api.running import Controller
from tests.api.trainjob_lab import (
    SETS,
    TRAIN,
    admin,
    api_server,
    controller,
    job_of,
    job_set,
    mpi_runtime,
    submit,
    train_job,
    until,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server", "controller"]

SNAPSHOT = "pi-runtime-snapshot"
PATH = f"api/v1/configmaps/{SNAPSHOT}"


def test_a_runtime_that_is_edited_or_deleted_changes_no_job_that_has_begun(
    admin: Admin, controller: Controller
) -> None:
    """CTL-13: also when the controller is another one by then."""
    submit(admin, train_job(suspend=True))
    before = job_set(admin)
    edited = mpi_runtime()
    edited["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 9
    admin.patch(f"{TRAIN}/trainingruntimes/mpi", {"spec": edited["spec"]})
    controller.stop()
    controller.start()
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": False}})
    eventually("goes on", lambda: job_set(admin)["spec"]["suspend"] is False)
    admin.delete(f"{TRAIN}/trainingruntimes/mpi")
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": True}})
    eventually("rests", lambda: job_set(admin)["spec"]["suspend"] is True)
    after = job_set(admin)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"]


def test_a_job_begins_with_its_runtime_as_it_was_edited_just_before(
    admin: Admin, controller: Controller
) -> None:
    """CTL-13: though the controller works ahead with what it read for the job before."""

    def limit(name: str) -> int | None:
        submit(admin, train_job(name))
        node = job_set(admin, name)["spec"]["replicatedJobs"][0]
        found: int | None = node["template"]["spec"].get("backoffLimit")
        return found

    assert [limit("first"), limit("same")] == [None, None]
    for told in (7, 8, 9):
        edited = mpi_runtime()
        node = edited["spec"]["template"]["spec"]["replicatedJobs"][0]
        node["template"]["spec"]["backoffLimit"] = told
        admin.patch(f"{TRAIN}/trainingruntimes/mpi", {"spec": edited["spec"]})
        assert [limit(f"after-{told}"), limit(f"same-{told}")] == [told, told]


def forged(admin: Admin) -> Object:
    """A runtime as the job names it, with something in it that nobody granted."""
    made = mpi_runtime(namespace=admin.namespace)
    for one in made["spec"]["template"]["spec"]["replicatedJobs"]:
        one["template"]["spec"]["template"]["spec"]["hostPID"] = True
    node = made["spec"]["template"]["spec"]["replicatedJobs"][0]
    node["template"]["spec"]["template"]["spec"]["containers"][0]["command"] = ["sshd"]
    return made


def store(admin: Admin, content: Object, job: Object, **change: object) -> None:
    """A snapshot made by hand that has `job` as its owner, but for `change`."""
    owner = {k: job[k] for k in ("apiVersion", "kind")} | {"name": "pi", "controller": True}
    owner |= {"uid": job["metadata"]["uid"], **change}
    meta = {"name": SNAPSHOT, "ownerReferences": [owner]}
    data = {"runtime": json.dumps(content)}
    admin.create("api/v1/configmaps", {"metadata": meta, "data": data})


def shares_its_node(admin: Admin) -> bool:
    jobs = job_set(admin)["spec"]["replicatedJobs"]
    return any("hostPID" in one["template"]["spec"]["template"]["spec"] for one in jobs)


def test_a_snapshot_that_was_there_before_the_job_began_is_not_believed(
    admin: Admin, controller: Controller
) -> None:
    """S-5: whoever may make ConfigMaps would choose what the controller makes pods from. The key
    is the live runtime's too: a worker with a command of its own needs no key of a host."""
    controller.stop()
    job = submit(admin, train_job())
    store(admin, forged(admin), job)
    controller.start()
    assert not shares_its_node(admin)
    kept = admin.get(PATH)
    assert kept is not None
    assert kept["immutable"] is True
    assert "hostPID" not in kept["data"]["runtime"]
    assert job_set(admin)["metadata"]["annotations"][RUNTIME_SNAPSHOT]
    secret = admin.get("api/v1/secrets/pi-mpi-ssh-auth")
    assert secret is not None
    assert "ssh-host-privatekey" in secret["data"]


def test_a_job_whose_status_was_written_has_not_begun_without_a_jobset(
    admin: Admin, controller: Controller
) -> None:
    """S-5: a controller that died just after the first status finds a snapshot that is not its."""
    controller.stop()
    job = submit(admin, train_job())
    told = {"type": "Suspended", "status": "False", "reason": "Resumed", "message": "m"}
    told["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    admin.patch(f"{TRAIN}/trainjobs/pi/status", {"status": {"conditions": [told]}})
    store(admin, forged(admin), job)
    controller.start()
    assert not shares_its_node(admin)


def test_a_snapshot_of_another_owner_is_a_name_that_is_taken(
    admin: Admin, controller: Controller
) -> None:
    """S-5: the same uid in a reference to another kind owns nothing."""
    controller.stop()
    job = submit(admin, train_job())
    store(admin, forged(admin), job, apiVersion="example.com/v1")
    controller.start()
    assert SNAPSHOT in until(admin, "Failed")["message"]
    assert admin.get(f"{SETS}/jobsets/pi") is None


def test_a_snapshot_that_was_exchanged_while_the_job_rested_is_not_believed(
    admin: Admin, controller: Controller
) -> None:
    """S-5: the JobSet carries the mark of what it was made from."""
    submit(admin, train_job(suspend=True))
    job_set(admin)
    controller.stop()
    admin.delete(PATH)
    store(admin, forged(admin), job_of(admin))
    place = [{"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {}}}}}}]
    place[0]["template"]["spec"]["template"]["spec"]["nodeSelector"]["zone"] = "a"  # type: ignore[index]
    patch = {"template": {"spec": {"replicatedJobs": place}}}
    kueue = {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": patch}
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"runtimePatches": [kueue], "suspend": False}})
    controller.start()
    eventually("goes on", lambda: job_set(admin)["spec"]["suspend"] is False)
    assert not shares_its_node(admin)
    kept = admin.get(PATH)
    assert kept is not None
    assert "hostPID" not in kept["data"]["runtime"]


def test_a_job_whose_runtime_is_lost_says_so_and_what_runs_runs_on(
    admin: Admin, controller: Controller
) -> None:
    """S-5: neither the snapshot nor the live runtime is what the JobSet was made from."""
    submit(admin, train_job())
    before = job_set(admin)
    controller.stop()
    admin.delete(PATH)
    edited = mpi_runtime()
    edited["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 9
    admin.patch(f"{TRAIN}/trainingruntimes/mpi", {"spec": edited["spec"]})
    controller.start()
    eventually("it is told", lambda: any(SNAPSHOT in m for _, _, m in admin.events("TrainJob")), 30)
    assert job_set(admin)["spec"] == before["spec"]


def test_a_jobset_without_a_mark_goes_on_with_its_snapshot(
    admin: Admin, controller: Controller
) -> None:
    """The Go trainer's, and those of earlier versions: the runtime was edited meanwhile."""
    submit(admin, train_job(suspend=True))
    before = job_set(admin)
    controller.stop()
    admin.patch(f"{SETS}/jobsets/pi", {"metadata": {"annotations": {RUNTIME_SNAPSHOT: None}}})
    edited = mpi_runtime()
    edited["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 9
    admin.patch(f"{TRAIN}/trainingruntimes/mpi", {"spec": edited["spec"]})
    controller.start()
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": False}})
    eventually("goes on", lambda: job_set(admin)["spec"]["suspend"] is False)
    after = job_set(admin)
    assert after["spec"]["replicatedJobs"] == before["spec"]["replicatedJobs"]
