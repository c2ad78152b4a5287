"""The API server that tests run against is the real one, with the settings of our users."""

from __future__ import annotations

import json

from tests.cluster import Kubectl, eventually
from tools.cluster.components import KUBERNETES_VERSION, OLDEST_VERSION
from tools.cluster.spec import Spec


def test_it_reports_its_true_version(api_server: Spec, kubectl: Kubectl) -> None:
    version = json.loads(kubectl("version", "-o", "json"))
    wanted = OLDEST_VERSION if api_server.oldest else KUBERNETES_VERSION
    assert version["serverVersion"]["gitVersion"] == wanted
    assert version["clientVersion"]["gitVersion"] == KUBERNETES_VERSION


def test_a_service_account_gets_a_token_that_the_server_accepts(namespace: Kubectl) -> None:
    eventually("default account", lambda: not namespace.attempt("get", "sa", "default").returncode)
    token = namespace("create", "token", "default").strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    asked = json.dumps({**review, "spec": {"token": token}})
    answer = json.loads(namespace("create", "-f", "-", "-o", "json", data=asked))
    user = answer["status"]["user"]["username"]
    assert user == f"system:serviceaccount:{namespace.namespace}:default"


def test_restricted_pod_security_is_enforced(namespace: Kubectl) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root"},
        "spec": {"containers": [{"name": "c", "image": "x", "securityContext": {"runAsUser": 0}}]},
    }
    answer = namespace.attempt("apply", "-f", "-", data=json.dumps(pod))
    assert "violates PodSecurity" in answer.stderr


def test_a_job_gets_its_pod_from_the_controller_manager(namespace: Kubectl) -> None:
    container = {
        "name": "c",
        "image": "x",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    namespace.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"template": {"spec": pod}},
        }
    )
    eventually("the Job's pod", lambda: "pod/j-" in namespace("get", "pods", "-o", "name"))


def test_an_owner_that_blocks_deletion_needs_the_right_on_its_finalizers(
    namespace: Kubectl,
) -> None:
    """As on OpenShift: who cannot update the owner's finalizers may not set the reference."""
    eventually("default account", lambda: not namespace.attempt("get", "sa", "default").returncode)
    namespace.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    namespace("create", "role", "writer", "--verb=create,get", "--resource=configmaps")
    account = f"{namespace.namespace}:default"
    namespace("create", "rolebinding", "writer", "--role=writer", f"--serviceaccount={account}")
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": namespace.get("configmap", "owner")["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "child", "ownerReferences": [owner]},
    }
    command = ("create", "-f", "-", f"--as=system:serviceaccount:{account}")
    answer = namespace.attempt(*command, data=json.dumps(child))
    assert "cannot set blockOwnerDeletion" in answer.stderr
