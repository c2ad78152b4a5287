"""JobSet and Kueue work as published: a JobSet completes, a queue holds back what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.cluster import Kubectl, eventually
from tests.e2e.manifests import Object, job


def _condition(obj: Object, kind: str) -> str:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((c["status"] for c in conditions if c["type"] == kind), "")


def test_a_jobset_runs_to_completion(namespace: Kubectl, image: Callable[[str], str]) -> None:
    template = job("", image("mpi-base"), ["true"])["spec"] | {"parallelism": 2, "completions": 2}
    namespace.apply(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "pair"},
            "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": template}}]},
        }
    )
    namespace.wait("--for=condition=Completed", "jobset/pair")
    assert namespace.get("job", "pair-node-0")["status"]["succeeded"] == 2


@pytest.fixture
def queue(namespace: Kubectl) -> Iterator[str]:
    """A queue of this test alone, with room for half a CPU."""
    name = namespace.namespace
    version = "kueue.x-k8s.io/v1beta2"
    quota = {"name": "cpu", "nominalQuota": "500m"}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": [quota]}]}
    own = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    namespace.apply(
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": name}},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": own, "resourceGroups": [group]},
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": "queue"},
            "spec": {"clusterQueue": name},
        },
    )
    yield "queue"
    namespace("delete", "clusterqueue", name, "--wait=false")
    namespace("delete", "resourceflavor", name, "--wait=false")


def test_kueue_holds_a_job_until_quota_is_free(
    namespace: Kubectl, queue: str, image: Callable[[str], str]
) -> None:
    """AC-12, with plain Jobs: the second does not fit beside the first."""
    base = image("mpi-base")
    for name in ("first", "second"):
        queued = job(name, base, ["sleep", "100000"], cpu="300m")
        queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
        queued["spec"]["suspend"] = True
        namespace.apply(queued)
        if name == "first":
            eventually("the first is admitted", lambda: not _suspended(namespace, "first"))
    namespace.wait("--for=jsonpath={.status.ready}=1", "job/first")
    assert _suspended(namespace, "second")
    why = "insufficient unused quota"
    eventually("Kueue says why", lambda: why in namespace("get", "workloads", "-o", "yaml"))
    namespace("delete", "job", "first")
    eventually("the second is admitted", lambda: not _suspended(namespace, "second"))


def _suspended(kubectl: Kubectl, name: str) -> bool:
    return bool(kubectl.get("job", name)["spec"]["suspend"])
