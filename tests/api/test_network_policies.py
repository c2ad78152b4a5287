"""The NetworkPolicies of a job on a real API server: there before its pods, and kept (CTL-6).

That a network enforces them is shown on a real cluster, in `tests/e2e/test_manifests.py`.
"""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.kinds.annotations import NETWORK_EGRESS, NETWORK_POLICY
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

POLICIES = "apis/networking.k8s.io/v1/networkpolicies"
NAMES = ["pi-launcher", "pi-workers"]


def annotated(made: Object, **more: str) -> Object:
    notes = {NETWORK_POLICY: "restricted", **more}
    return {**made, "metadata": {**made["metadata"], "annotations": notes}}


def policies(admin: Admin) -> list[Object]:
    return sorted(admin.every(POLICIES), key=lambda one: str(one["metadata"]["name"]))


def names(admin: Admin) -> list[str]:
    return [one["metadata"]["name"] for one in policies(admin)]


def born(one: Object) -> str:
    return str(one["metadata"]["creationTimestamp"])


def set_policy(admin: Admin, value: str, path: str = f"{JOBS}/mpijobs/pi") -> None:
    admin.patch(path, {"metadata": {"annotations": {NETWORK_POLICY: value}}})


def test_policies_are_there_before_the_pods_and_the_server_takes_them_as_they_are(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-6: nothing is defaulted or dropped, else they would be written again and again."""
    submit(admin, annotated(job(2), **{NETWORK_EGRESS: "10.0.0.0/8"}))
    until(admin, "Running")
    found = policies(admin)
    assert names(admin) == NAMES
    assert max(map(born, found)) <= min(map(born, admin.pods()))
    versions = [one["metadata"]["resourceVersion"] for one in found]
    admin.change(activeDeadlineSeconds=3600)
    eventually("looked at", lambda: admin.job()["metadata"]["generation"] == 2)
    assert [one["metadata"]["resourceVersion"] for one in policies(admin)] == versions


def test_policies_are_put_right_removed_and_made_anew(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    """CTL-6: the state that is wanted holds, whatever was done."""
    submit(admin, annotated(job(1)))
    until(admin, "Running")
    wanted = [one["spec"] for one in policies(admin)]
    admin.patch(f"{POLICIES}/pi-workers", {"spec": {"ingress": [{}]}})
    eventually("put right", lambda: [one["spec"] for one in policies(admin)] == wanted)
    admin.delete(f"{POLICIES}/pi-launcher")
    eventually("made anew", lambda: names(admin) == NAMES)
    set_policy(admin, "none")
    eventually("opened", lambda: names(admin) == [])
    set_policy(admin, "restricted")
    eventually("closed", lambda: names(admin) == NAMES)
    assert [one["spec"] for one in policies(admin)] == wanted


def test_a_policy_of_somebody_else_stays_and_the_job_says_so(
    admin: Admin, controller: Controller
) -> None:
    """CTL-6: a job whose network cannot be closed does not run."""
    spec: Any = {"podSelector": {}, "policyTypes": ["Ingress"]}
    admin.create(POLICIES, {"metadata": {"name": "pi-workers"}, "spec": spec})
    submit(admin, annotated(job(1)))
    failed = until(admin, "Failed")
    assert "NetworkPolicy pi-workers already exists" in failed["message"]
    assert admin.pods() == []
    assert policies(admin)[-1]["spec"]["podSelector"] == {}


def test_an_administrator_s_default_closes_every_network(admin: Admin, kubelet: Kubelet) -> None:
    """CTL-6, AC-13: but of jobs that ask for theirs to be open; none is in the node's network."""
    flags = ("--network-policy-default=restricted", "--network-egress-default=none")
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, *flags):
        submit(admin, job(1))
        opened = job(1, "opened")
        opened["metadata"]["annotations"] = {NETWORK_POLICY: "none"}
        submit(admin, opened)
        on_node = job(1, "on-node")
        worker = on_node["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        worker["hostNetwork"] = True
        submit(admin, on_node)
        until(admin, "Running")
        until(admin, "Running", "opened")
        failed = until(admin, "Failed", "on-node")
    assert names(admin) == NAMES
    assert all("Egress" in one["spec"]["policyTypes"] for one in policies(admin))
    assert "Worker.template.spec.hostNetwork: Forbidden" in failed["message"]
