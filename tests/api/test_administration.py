"""What an administrator sets for all jobs, and a job for itself, on a real API server."""

from __future__ import annotations

import base64
import json
from functools import partial

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from mpi_trainer.api.kinds.annotations import ATTEMPT, POD_FAILURE_POLICY
from tests.api.admin import Admin, Object
from tests.api.kubelet import Kubelet, is_launcher, is_worker
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

TYPE = "training.kubeflow.org/replica-type"
POLICY = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
}


def test_pods_say_their_replica_type(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(2))
    until(admin, "Running")
    for pod in admin.pods():
        kind = "launcher" if is_launcher(pod) else "worker"
        assert pod["metadata"]["labels"][TYPE] == kind
    assert len([pod for pod in admin.pods() if is_worker(pod)]) == 2


def test_a_new_job_over_the_administrator_s_limit_fails_and_says_the_limit(
    admin: Admin, kubelet: Kubelet
) -> None:
    kubeconfig = admin.spec.kubeconfig
    submit(admin, job(3, "before"))
    with Controller.alone(kubeconfig, admin.namespace):
        until(admin, "Running", "before")
    with Controller.alone(kubeconfig, admin.namespace, "--max-workers-per-job=2"):
        submit(admin, job(3, "over"))
        submit(admin, job(2, "within"))
        until(admin, "Running", "within")
        said = until(admin, "Failed", "over")["message"]
        assert "spec.mpiReplicaSpecs.Worker.replicas" in said
        assert "must be at most 2, the limit of this cluster" in said
        kubelet.exit(_launcher(admin, "before"), 0)
        until(admin, "Succeeded", "before")
    assert not [p for p in admin.pods() if p["metadata"]["name"].startswith("over-")]


def test_keys_are_rsa_4096_where_the_administrator_says_so(admin: Admin, kubelet: Kubelet) -> None:
    """AC-19"""
    kubeconfig = admin.spec.kubeconfig
    with Controller.alone(kubeconfig, admin.namespace, "--ssh-key-type=rsa-4096"):
        submit(admin, job(1))
        until(admin, "Running", seconds=60)
        secret = admin.get("api/v1/secrets/pi-ssh")
        assert secret is not None
        for name in ("ssh-publickey", "ssh-host-publickey"):
            key = load_ssh_public_key(base64.b64decode(secret["data"][name]))
            assert isinstance(key, RSAPublicKey) and key.key_size == 4096


def test_a_pod_failure_policy_ends_a_job_or_costs_it_nothing(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-11"""
    for name, code in (("ends", 42), ("goes-on", 7)):
        made = job(1, name, backoffLimit=1)
        made["metadata"]["annotations"] = {POD_FAILURE_POLICY: json.dumps(POLICY)}
        submit(admin, made)
        until(admin, "Running", name)
        kubelet.exit(_launcher(admin, name), code)
    said = until(admin, "Failed", "ends")
    assert said["reason"] == "PodFailurePolicy" and "exit code 42" in said["message"]
    for attempt in (2, 3):
        eventually(f"attempt {attempt} runs", partial(_runs, admin, attempt), 30)
        if attempt == 2:
            kubelet.exit(_launcher(admin, "goes-on"), 7)
    kubelet.exit(_launcher(admin, "goes-on"), 0)
    until(admin, "Succeeded", "goes-on")


def _launcher(admin: Admin, name: str) -> Object:
    found = [pod for pod in admin.pods("launcher") if pod["metadata"]["name"].startswith(name)]
    return max(found, key=lambda pod: int(pod["metadata"]["annotations"][ATTEMPT]))


def _runs(admin: Admin, attempt: int) -> bool:
    try:
        pod = _launcher(admin, "goes-on")
    except ValueError:
        return False
    runs = pod["status"].get("phase") == "Running" and admin.holds("Running", "goes-on")
    return runs and pod["metadata"]["annotations"][ATTEMPT] == str(attempt)
