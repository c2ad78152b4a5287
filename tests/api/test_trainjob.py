"""TrainJobs on a real API server: what the controller makes of them, and what it says."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

from mpi_trainer.api.kinds.labels import LABEL_JOBSET_UID, LABEL_REPLICATED_JOB, LABEL_TRAINJOB
from mpi_trainer.controller.trainjob.status_throttle import COUNTS
from tests.api.admin import Admin, Object
from tests.api.running import Controller
from tests.api.trainjob_lab import (
    OURS,
    SETS,
    TRAIN,
    admin,
    api_server,
    condition,
    controller,
    end,
    finding,
    job_of,
    job_set,
    mpi_runtime,
    replicated,
    runtime,
    submit,
    train_job,
    until,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server", "controller"]


NONE = {"succeeded": 0, "ready": 0, "failed": 0, "active": 0, "suspended": 0}


def test_an_mpi_job_gets_what_upstream_makes_under_the_same_names(
    admin: Admin, controller: Controller
) -> None:
    """API-2"""
    submit(admin, train_job(trainer={"numNodes": 3, "numProcPerNode": 2}))
    made = job_set(admin)
    counts = {
        job["name"]: (job["template"]["spec"]["parallelism"], job["replicas"])
        for job in made["spec"]["replicatedJobs"]
    }
    assert counts == {"node": (3, 1), "launcher": (1, 1)}
    hostfile = admin.get("api/v1/configmaps/pi-mpi-hostfile")
    assert hostfile is not None
    lines = [f"pi-node-0-{i}.pi slots=2\n" for i in range(3)]
    assert hostfile["data"]["hostfile"] == "".join(lines)
    secret = admin.get("api/v1/secrets/pi-mpi-ssh-auth")
    assert secret is not None
    assert secret["type"] == "kubernetes.io/ssh-auth"
    assert {"ssh-privatekey", "ssh-publickey"} <= secret["data"].keys()
    snapshot = admin.get("api/v1/configmaps/pi-runtime-snapshot")
    assert snapshot is not None
    assert json.loads(snapshot["data"]["runtime"])["metadata"]["name"] == "mpi"
    uid = job_of(admin)["metadata"]["uid"]
    for child in (made, hostfile, secret, snapshot):
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (uid, True)


def test_a_torch_job_gets_torchrun_s_variables_and_a_plain_one_nothing(
    admin: Admin, controller: Controller
) -> None:
    """API-2"""
    submit(admin, train_job("torch", "torch", trainer={"numNodes": 2, "numProcPerNode": 4}))
    submit(admin, train_job("plain", "plain", trainer={"numNodes": 2}))
    environments = {}
    for name in ("torch", "plain"):
        (job,) = job_set(admin, name)["spec"]["replicatedJobs"]
        assert job["template"]["spec"]["parallelism"] == 2
        (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
        environments[name] = {v["name"]: v.get("value") for v in container.get("env", [])}
    assert environments["plain"] == {}
    assert environments["torch"] == {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "4",
        "PET_NODE_RANK": None,
        "PET_MASTER_ADDR": "torch-node-0-0.torch",
        "PET_MASTER_PORT": "29500",
    }
    assert admin.get("api/v1/secrets/torch-mpi-ssh-auth") is None


def test_a_job_ends_as_its_jobset_does_and_its_key_with_it(
    admin: Admin, controller: Controller
) -> None:
    """API-2, AC-19, CTL-12; a JobSet that is gone after the end is not made again."""
    submit(admin, train_job())
    job_set(admin)
    end(admin, "Completed", "AllJobsCompleted")
    told = until(admin, "Complete")
    assert (told["reason"], told["message"]) == ("AllJobsCompleted", "AllJobsCompleted it was")
    assert job_of(admin)["status"]["jobsStatus"][0]["succeeded"] == 1
    assert finding(admin, "phase") == "Succeeded"
    assert finding(admin, "completion-time")
    eventually("key is gone", lambda: admin.get("api/v1/secrets/pi-mpi-ssh-auth") is None)
    labels = f'{{framework="mpi",namespace="{admin.namespace}"}}'
    assert controller.metric(f"kubeflow_trainer_trainjob_created_total{labels}") == 1
    assert controller.metric(f"kubeflow_trainer_trainjob_succeeded_total{labels}") == 1
    admin.delete(f"{SETS}/jobsets/pi")
    submit(admin, train_job("later"))
    job_set(admin, "later")
    assert admin.get(f"{SETS}/jobsets/pi") is None


def test_counts_that_change_in_a_burst_are_told_to_the_last(
    admin: Admin, controller: Controller
) -> None:
    """CTL-13: with fewer writes than changes, and although nothing happens after the last."""
    submit(admin, train_job())
    job_set(admin)

    def told() -> list[Object]:
        counts: list[Object] = job_of(admin).get("status", {}).get("jobsStatus", [])
        return counts

    def count(number: int) -> None:
        status = {"replicatedJobsStatus": [{"name": "node", **NONE, "failed": number}]}
        admin.patch(f"{SETS}/jobsets/pi/status", {"status": status})

    count(1)
    eventually("the first is told", lambda: any(one["failed"] == 1 for one in told()))
    versions, begun = set(), time.monotonic()
    for number in range(2, 22):
        count(number)
        versions.add(job_of(admin)["metadata"]["resourceVersion"])
    writes = 2 + (time.monotonic() - begun) / COUNTS.pause.total_seconds()
    eventually("the last is told", lambda: any(one["failed"] == 21 for one in told()), 30)
    assert len(versions) <= writes, "each change was written by itself"


def test_a_failure_keeps_the_jobset_s_reason(admin: Admin, controller: Controller) -> None:
    submit(admin, train_job())
    job_set(admin)
    end(admin, "Failed", "FailedJobs")
    assert until(admin, "Failed")["reason"] == "FailedJobs"
    assert finding(admin, "phase") == "Failed"
    assert finding(admin, "cause") == "FailedJobs it was"
    wanted = ("Warning", "FailedJobs", "FailedJobs it was")
    eventually("it is told", lambda: wanted in admin.events("TrainJob"))


def test_pods_are_asked_what_a_slow_job_waits_for_and_heard_when_they_end(
    admin: Admin, controller: Controller
) -> None:
    """AC-16, OBS-2: the controller watches no pod that lives."""
    submit(admin, train_job())
    node = pod_of(admin, job_set(admin), "node")
    unplaced = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    admin.patch(f"{node}/status", {"status": {"phase": "Pending", "conditions": [unplaced]}})
    wanted = "1 of 1 pods have no node: 0/3 nodes are available (pi-node-0-0)"
    eventually("it is told", lambda: finding(admin, "cause") == wanted, 30)
    assert finding(admin, "phase") == "Pending"
    up = {"succeeded": 0, "ready": 1, "failed": 0, "active": 1, "suspended": 0}
    counts = [{"name": name, **up} for name in ("node", "launcher")]
    admin.patch(f"{SETS}/jobsets/pi/status", {"status": {"replicatedJobsStatus": counts}})
    eventually("it runs", lambda: finding(admin, "phase") == "Running", 30)
    assert (finding(admin, "cause"), bool(finding(admin, "start-time"))) == ("", True)
    killed = {"exitCode": 137, "reason": "OOMKilled"}
    main = {"name": "node", "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    over = [{**main, "state": {"terminated": killed}}]
    admin.patch(f"{node}/status", {"status": {"phase": "Failed", "containerStatuses": over}})
    end(admin, "Failed", "FailedJobs")
    cause = "Worker pi-node-0-0 ended with exit code 137 (OOMKilled)"
    assert until(admin, "Failed")["message"] == f"FailedJobs it was; {cause}"


def pod_of(admin: Admin, job_set: Object, role: str) -> str:
    """One of the JobSet's pods, as the Job controller would make it for its Job; its path."""
    job = batch_job(admin, job_set, f"{job_set['metadata']['name']}-{role}-0")
    return labelled_pod(admin, job_set, role, f"{job['metadata']['name']}-0", job)


def batch_job(admin: Admin, holder: Object, name: str) -> Object:
    """A Job that is controlled by `holder`; its pods are the test's, not the Job controller's."""
    spec = {"containers": [{"name": "node", "image": "x"}], "restartPolicy": "Never"}
    job: Object = {"metadata": {"name": name, "ownerReferences": [controller_of(holder)]}}
    job["spec"] = {"managedBy": "example.com/test", "template": {"spec": spec}}
    return admin.create("apis/batch/v1/jobs", job)


def labelled_pod(admin: Admin, job_set: Object, role: str, name: str, owner: Object) -> str:
    """A pod with the labels of a JobSet's pods that `owner` controls; its path."""
    labels = {
        LABEL_TRAINJOB: job_set["metadata"]["name"],
        LABEL_JOBSET_UID: job_set["metadata"]["uid"],
        LABEL_REPLICATED_JOB: role,
    }
    spec = {"hostname": name, "containers": [{"name": "node", "image": "x"}]}
    meta = {"name": name, "labels": labels, "ownerReferences": [controller_of(owner)]}
    admin.create("api/v1/pods", {"metadata": meta, "spec": spec})
    return f"api/v1/pods/{name}"


def controller_of(owner: Object) -> Object:
    meta = owner["metadata"]
    kind = {key: owner[key] for key in ("apiVersion", "kind")}
    return {**kind, "name": meta["name"], "uid": meta["uid"], "controller": True}


def ended(admin: Admin, pod: str, code: int) -> None:
    """The pod's main container ends with this code."""
    main = {"name": "node", "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    state = {**main, "state": {"terminated": {"exitCode": code, "reason": "Error"}}}
    phase = "Failed" if code else "Succeeded"
    admin.patch(f"{pod}/status", {"status": {"phase": phase, "containerStatuses": [state]}})


def test_a_pod_counts_for_a_job_only_if_its_owners_lead_to_the_job(
    admin: Admin, controller: Controller
) -> None:
    """S-11: labels alone let any pod speak for another's job. What is forged says 66."""
    submit(admin, train_job())
    own = job_set(admin)
    stranger = batch_job(admin, own, "pi-stranger-0")
    admin.patch("apis/batch/v1/jobs/pi-stranger-0", {"metadata": {"ownerReferences": None}})
    ended(admin, labelled_pod(admin, own, "launcher", "forged-0", own), 66)
    ended(admin, labelled_pod(admin, own, "launcher", "forged-1", stranger), 66)
    ended(admin, pod_of(admin, own, "node"), 7)
    end(admin, "Failed", "FailedJobs")
    told = until(admin, "Failed")["message"]
    assert told == "FailedJobs it was; Worker pi-node-0-0 ended with exit code 7"


def test_a_suspended_job_rests_and_comes_back_as_it_was_changed(
    admin: Admin, controller: Controller
) -> None:
    """As Kueue does it: the place is written while the job rests, and both in one request."""
    submit(admin, train_job(suspend=True))
    assert job_set(admin)["spec"]["suspend"] is True
    assert until(admin, "Suspended")["reason"] == "Suspended"
    uid = job_set(admin)["metadata"]["uid"]
    place = {"nodeSelector": {"zone": "a"}}
    changed = [{"name": "node", "template": {"spec": {"template": {"spec": place}}}}]
    kueue = {
        "manager": "kueue.x-k8s.io/manager",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": changed}}},
    }
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"runtimePatches": [kueue], "suspend": False}})
    assert until(admin, "Suspended", "False")["reason"] == "Resumed"
    eventually("goes on", lambda: job_set(admin)["spec"]["suspend"] is False)
    (node, launcher) = (
        job["template"]["spec"]["template"]["spec"].get("nodeSelector")
        for job in job_set(admin)["spec"]["replicatedJobs"]
    )
    assert (node, launcher) == ({"zone": "a"}, None)
    assert job_set(admin)["metadata"]["uid"] == uid
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": True}})
    eventually("rests", lambda: job_set(admin)["spec"]["suspend"] is True)
    assert finding(admin, "phase") == "Suspended"


def test_a_job_past_its_deadline_fails_and_leaves_nothing_running(
    admin: Admin, controller: Controller
) -> None:
    submit(admin, train_job(activeDeadlineSeconds=10))
    job_set(admin)
    told = until(admin, "Failed")
    assert told["reason"] == "DeadlineExceeded"
    assert "10 s" in told["message"]
    eventually("JobSet is gone", lambda: admin.get(f"{SETS}/jobsets/pi") is None)


def test_a_finished_job_is_deleted_when_its_runtime_says_so(
    admin: Admin, controller: Controller
) -> None:
    """AC-4, by an annotation: neither job nor runtime has a field for it."""
    notes = {f"{OURS}/ttl-seconds-after-finished": "1"}
    admin.create(f"{TRAIN}/trainingruntimes", mpi_runtime("short", annotations=notes))
    submit(admin, train_job(runtime="short"))
    job_set(admin)
    end(admin, "Completed", "AllJobsCompleted")
    eventually("deleted", lambda: admin.get(f"{TRAIN}/trainjobs/pi") is None)


def test_a_job_that_another_controller_manages_is_left_alone(
    admin: Admin, controller: Controller
) -> None:
    submit(admin, train_job("theirs", managedBy="kueue.x-k8s.io/multikueue"))
    submit(admin, train_job())
    job_set(admin)
    assert admin.get(f"{SETS}/jobsets/theirs") is None
    assert "status" not in job_of(admin, "theirs")


def test_a_job_waits_for_a_runtime_that_is_missing_and_says_so(
    admin: Admin, controller: Controller
) -> None:
    submit(admin, train_job(runtime="late"))
    eventually("says so", lambda: "there is no TrainingRuntime 'late'" in finding(admin, "cause"))
    assert finding(admin, "phase") == "Pending"
    admin.create(f"{TRAIN}/trainingruntimes", mpi_runtime("late"))
    job_set(admin)


def test_a_runtime_that_cannot_be_used_is_refused_with_the_reason(
    admin: Admin, controller: Controller
) -> None:
    jobs = replicated("main", "trainer")
    admin.create(f"{TRAIN}/trainingruntimes", runtime("flux", {"flux": {}}, jobs))
    submit(admin, train_job(runtime="flux"))
    told = until(admin, "Failed")
    assert told["reason"] == "TrainingRuntimeNotSupported"
    assert "no job `node` that is labelled as the trainer" in told["message"]
    assert admin.get(f"{SETS}/jobsets/pi") is None


def test_another_s_jobset_of_the_name_is_never_touched(
    admin: Admin, controller: Controller
) -> None:
    theirs = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "pi"},
        "spec": {"replicatedJobs": []},
    }
    made = admin.create(f"{SETS}/jobsets", theirs)
    submit(admin, train_job())
    told = until(admin, "Failed")
    assert "JobSet pi already exists and is not managed by this TrainJob" in told["message"]
    assert job_set(admin)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_name_that_an_mpijob_has_already_is_refused(admin: Admin, controller: Controller) -> None:
    """JobSet would take the MPIJob's Service for its own."""
    pod = {"containers": [{"name": "launcher", "image": "x"}]}
    spec = {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": pod}}}}
    elder = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "pi"}}
    admin.create("apis/kubeflow.org/v2beta1/mpijobs", {**elder, "spec": spec})
    eventually("its Service", lambda: admin.get("api/v1/services/pi") is not None)
    submit(admin, train_job())
    told = until(admin, "Failed")
    assert told["reason"] == "ErrResourceExists"
    assert "metadata.name: an MPIJob of this namespace is called 'pi' too" in told["message"]
    assert admin.get(f"{SETS}/jobsets/pi") is None


def test_only_the_runtimes_that_are_told_are_served(admin: Admin) -> None:
    only = "--trainjob-runtimes=plain"
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, only):
        submit(admin, train_job("theirs"))
        submit(admin, train_job("ours", "plain"))
        job_set(admin, "ours")
        assert admin.get(f"{SETS}/jobsets/theirs") is None
        assert condition(admin, "Suspended", "theirs") is None


def test_the_controller_does_not_start_beside_a_live_trainer(admin: Admin) -> None:
    lock = (f"--lock-namespace={admin.namespace}",)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    held = {"holderIdentity": "go", "leaseDurationSeconds": 15, "renewTime": now}
    lease = {"metadata": {"name": "trainer.kubeflow.org"}, "spec": held}
    admin.create("apis/coordination.k8s.io/v1/leases", lease)
    alone = Controller.alone(admin.spec.kubeconfig, admin.namespace, *lock, wait=False)
    code, said = alone.outcome()
    assert code == 1
    assert "the public trainer is at work here" in said
    assert "--trainjobs=off" in said
    listed = (*lock, "--trainjob-runtimes=mpi")
    code, said = Controller.alone(
        admin.spec.kubeconfig, admin.namespace, *listed, wait=False
    ).outcome()
    assert (code, "the public trainer is at work here" in said) == (1, True), "C-15"
    told = (*lock, "--trainjobs=off")
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, *told):
        submit(admin, train_job())
