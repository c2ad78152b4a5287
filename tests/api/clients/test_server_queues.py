"""Quotas and queues over the REST API, for users of different rights.

Kueue's queues are definitions of the same group and kinds, whose objects the tests write.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.admin import Object
from tests.api.clients.test_server import Team, other, ours, port, theirs
from tests.api.lab import admin, served
from tests.cluster import Kubectl, eventually
from tests.rest import Rest
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "port", "served", "theirs"]

ROLE = "sees-cluster-queues"
KUEUE = "kueue.x-k8s.io"


def definition(plural: str, kind: str, scope: str) -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{KUEUE}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": KUEUE,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": scope,
            "versions": [{**version, "schema": {"openAPIV3Schema": anything}}],
        },
    }


@pytest.fixture
def kueue(served: Spec, ours: Team) -> Iterator[None]:
    """A queue of ours; the user may read the ClusterQueue behind it, the viewer may not."""
    kubectl, space = Kubectl(served), ours.admin.namespace
    kubectl.apply(definition("localqueues", "LocalQueue", "Namespaced"))
    kubectl.apply(definition("clusterqueues", "ClusterQueue", "Cluster"))
    paths = [
        ("get", "--raw", f"/apis/{KUEUE}/v1beta1/{one}s") for one in ("localqueue", "clusterqueue")
    ]
    eventually("queues", lambda: not any(kubectl.attempt(*path).returncode for path in paths))
    amount = {"name": "nvidia.com/gpu", "nominalQuota": 8}
    kubectl.apply(
        {
            "apiVersion": f"{KUEUE}/v1beta1",
            "kind": "ClusterQueue",
            "metadata": {"name": "all"},
            "spec": {"resourceGroups": [{"flavors": [{"name": "a100", "resources": [amount]}]}]},
            "status": {"pendingWorkloads": 3},
        }
    )
    Kubectl(served, space).apply(
        {
            "apiVersion": f"{KUEUE}/v1beta1",
            "kind": "LocalQueue",
            "metadata": {"name": "fast", "namespace": space},
            "spec": {"clusterQueue": "all"},
            "status": {"pendingWorkloads": 2, "admittedWorkloads": 1},
        }
    )
    both = [f"--serviceaccount={space}:{who}" for who in ("user", "viewer")]
    own = Kubectl(served, space)
    own("create", "role", "queues", "--verb=list", f"--resource=localqueues.{KUEUE}")
    own("create", "rolebinding", "queues", "--role=queues", *both)
    kubectl("create", "clusterrole", ROLE, "--verb=get", f"--resource=clusterqueues.{KUEUE}")
    whom = f"--serviceaccount={space}:user"
    kubectl("create", "clusterrolebinding", ROLE, f"--clusterrole={ROLE}", whom)
    yield
    kubectl("delete", "clusterrolebinding,clusterrole", ROLE)
    kubectl("delete", "crd", f"localqueues.{KUEUE}", f"clusterqueues.{KUEUE}")


def test_what_is_behind_a_queue_is_told_to_whoever_may_read_it(
    port: int, ours: Team, theirs: Team, kueue: None
) -> None:
    path = f"/api/v1/namespaces/{ours.admin.namespace}/queues"
    (queue,) = Rest(port, ours.user.token).get(path)["items"]
    assert (queue["name"], queue["clusterQueue"]) == ("fast", "all")
    assert (queue["pending"], queue["admitted"], queue["clusterPending"]) == (2, 1, 3)
    assert queue["resources"] == [
        {"flavor": "a100", "resource": "nvidia.com/gpu", "nominal": "8", "used": "0"}
    ]
    assert queue["waiting"] is None, "there is no visibility API"
    (seen,) = Rest(port, ours.viewer.token).get(path)["items"]
    assert (seen["pending"], seen["resources"], seen["clusterPending"]) == (2, None, None)
    assert Rest(port, theirs.user.token).get(path)["items"] == []


def test_a_quota_is_told_to_the_users_of_its_namespace(
    port: int, ours: Team, theirs: Team, served: Spec
) -> None:
    space = ours.admin.namespace
    Kubectl(served, space)("create", "quota", "small", "--hard=requests.nvidia.com/gpu=4,pods=9")
    path = f"/api/v1/namespaces/{space}/quota"
    items = Rest(port, ours.user.token).get(path)["items"]
    assert items == [
        {"name": "small", "resource": "pods", "hard": "9", "used": "0"},
        {"name": "small", "resource": "requests.nvidia.com/gpu", "hard": "4", "used": "0"},
    ]
    closed = Rest(port, theirs.user.token).ask("GET", path)
    assert closed.status == 403 and b"small" not in closed.body
