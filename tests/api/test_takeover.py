"""Jobs that the public operator began, in each of their states, are taken over and end well (C-5).

What it makes is made here as it makes it: names, owners, labels on pods only, a Secret with two
keys and a launcher Job that tries again by itself.
"""

from __future__ import annotations

import base64
import time
from typing import Any

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "kubelet", "served"]

BATCH = "apis/batch/v1/jobs"
ATTEMPT = "mpi-trainer.opendatahub.io/attempt"
LABELS = {
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-name": "pi",
}


def begin(
    admin: Admin, kind: str, *, tries: int = 2, suspend: bool = False, name: str = "pi"
) -> None:
    """The job as the public operator has it; `kind` is the condition that holds."""
    made = submit(admin, job(2, name, backoffLimit=tries, suspend=suspend))
    marks = {**LABELS, "training.kubeflow.org/job-name": name}
    owner = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "name": name,
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }

    def child(path: str, called: str, **more: Any) -> None:
        meta = {"name": called, "labels": {"app": name}, "ownerReferences": [owner]}
        meta |= more.pop("metadata", {})
        admin.create(path, {"metadata": meta, **more})

    key = base64.b64encode(b"upstream's").decode()
    keys = {"ssh-privatekey": key, "ssh-publickey": key}
    child("api/v1/secrets", f"{name}-ssh", type="kubernetes.io/ssh-auth", data=keys)
    child("api/v1/configmaps", f"{name}-config", data={"hostfile": "x", "discover_hosts.sh": "y"})
    child("api/v1/services", name, spec={"clusterIP": "None", "selector": marks})
    template = {
        "metadata": {"labels": {**marks, "training.kubeflow.org/job-role": "launcher"}},
        "spec": {"containers": [{"name": "launcher", "image": "x"}], "restartPolicy": "Never"},
    }
    spec = {"backoffLimit": tries, "suspend": suspend, "template": template}
    child(BATCH, f"{name}-launcher", spec=spec)
    if not suspend:
        for index in range(2):
            labels = {**marks, "training.kubeflow.org/job-role": "worker"}
            pod = {"containers": [{"name": "worker", "image": "x"}], "restartPolicy": "Never"}
            child("api/v1/pods", f"{name}-worker-{index}", metadata={"labels": labels}, spec=pod)
    conditions = [told(one, "True") for one in dict.fromkeys(("Created", kind))]
    counts = {"Launcher": {"active": 1}, "Worker": {"active": 2}} if kind == "Running" else {}
    admin.patch(
        f"{JOBS}/mpijobs/{name}/status",
        {"status": {"conditions": conditions, "replicaStatuses": counts}},
    )


def told(kind: str, status: str) -> Object:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    reason = {"reason": f"MPIJob{kind}", "message": "", "lastUpdateTime": now}
    return {"type": kind, "status": status, **reason, "lastTransitionTime": now}


def ours(admin: Admin) -> Controller:
    return Controller.alone(admin.spec.kubeconfig, admin.namespace)


def living(admin: Admin) -> Object | None:
    found = [p for p in admin.pods("launcher") if p["status"].get("phase") == "Running"]
    return found[0] if found else None


def test_a_suspended_job_comes_back_under_ours(admin: Admin, kubelet: Kubelet) -> None:
    """Its Secret has no host key, and its suspended Job would never run."""
    begin(admin, "Suspended", suspend=True)
    with ours(admin):
        eventually("its Job is gone", lambda: admin.get(f"{BATCH}/pi-launcher") is None)
        admin.change(suspend=False)
        until(admin, "Running")
        secret, batch = admin.get("api/v1/secrets/pi-ssh"), admin.get(f"{BATCH}/pi-launcher")
        assert secret is not None
        assert "ssh-host-privatekey" in secret["data"]
        assert batch is not None
        assert ATTEMPT in batch["metadata"]["annotations"]
        launcher = living(admin)
        assert launcher is not None
        kubelet.exit(launcher)
        until(admin, "Succeeded")


def test_a_running_job_is_followed_through_the_tries_of_its_own_job(
    admin: Admin, kubelet: Kubelet
) -> None:
    begin(admin, "Running")
    eventually("it runs", lambda: living(admin) is not None)
    before = {p["metadata"]["uid"] for p in admin.pods()}
    with ours(admin) as one:
        eventually("its Job is seen", lambda: labels(admin) >= set(LABELS))
        eventually("ours looked", lambda: one.metric(LOOKED) >= 2)
        assert {p["metadata"]["uid"] for p in admin.pods()} == before
        first = living(admin)
        assert first is not None
        kubelet.exit(first, 1)
        eventually("its Job tries again", lambda: living(admin) is not None, 60)
        assert admin.holds("Running")
        assert not admin.holds("Restarting")
        second = living(admin)
        assert second is not None
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        kubelet.exit(second)
        until(admin, "Succeeded")
        workers = {p["metadata"]["uid"] for p in admin.pods("worker")}
        assert workers < before


def test_a_job_that_failed_meanwhile_is_told_as_failed(admin: Admin, kubelet: Kubelet) -> None:
    begin(admin, "Running", tries=0)
    eventually("it runs", lambda: living(admin) is not None)
    launcher = living(admin)
    assert launcher is not None
    kubelet.exit(launcher, 7)
    eventually("its Job failed", lambda: bool((admin.get(f"{BATCH}/pi-launcher") or {})["status"]))
    with ours(admin):
        failed = until(admin, "Failed")
        assert failed["reason"] == "BackoffLimitExceeded"
        assert "exit code 7" in failed["message"]
        assert admin.job()["status"]["completionTime"]


LOOKED = 'controller_runtime_reconcile_total{controller="mpijob",result="success"}'


def labels(admin: Admin) -> set[str]:
    found = admin.get(f"{BATCH}/pi-launcher")
    assert found is not None
    return set(found["metadata"].get("labels", {}))
