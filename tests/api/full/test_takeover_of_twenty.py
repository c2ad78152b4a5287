"""MIG-3: twenty jobs in all states, taken over from the public operator and given back.

Issue 31, Shows 3. What that operator made is made here as it makes it (`test_takeover`), a kubelet
is played, and the Job controller is the real one. No pod is restarted and no status is lost; given
back means that the operator's own definition is applied over ours, and that all it made is there as
it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import CRD, admin, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.api.test_takeover import begin, told
from tests.cluster import Kubectl, api_spec, eventually, shared_cluster
from tools.cluster.build import source_of
from tools.cluster.components import MPI_OPERATOR
from tools.cluster.spec import Spec

__all__ = ["admin", "kubelet", "served"]

KINDS: dict[str, int] = {
    "running": 6, "retrying": 3, "suspended": 4, "succeeded": 3, "failed": 2, "waiting": 1,
    "created": 1,
}  # fmt: skip
"""`waiting`: no node has room for its workers; `created`: the operator has made nothing for it"""
NAMES = [f"{kind}-{n}" for kind, count in KINDS.items() for n in range(count)]
CHILDREN = ("api/v1/services", "api/v1/configmaps", "api/v1/secrets", "apis/batch/v1/jobs")
RESULTS = ("success", "requeue", "requeue_after")
LOOKS = 'controller_runtime_reconcile_total{{controller="mpijob",result="{}"}}'

pytestmark = [pytest.mark.full, pytest.mark.timeout(600, func_only=True)]


@pytest.fixture(scope="session")
def api_server() -> Iterator[Spec]:
    """The definition is exchanged: a server of its own."""
    yield from shared_cluster(api_spec("test-twenty"))


def kind_of(name: str) -> str:
    return name.rpartition("-")[0]


def launcher(admin: Admin, name: str) -> Object | None:
    """The launcher pod that runs now."""
    for pod in admin.pods("launcher"):
        mine = pod["metadata"]["labels"]["training.kubeflow.org/job-name"] == name
        if mine and pod["status"].get("phase") == "Running":
            return pod
    return None


def end(admin: Admin, kubelet: Kubelet, name: str, code: int = 0) -> None:
    eventually(f"{name} has a launcher", lambda: launcher(admin, name) is not None)
    pod = launcher(admin, name)
    assert pod is not None
    kubelet.exit(pod, code)
    uid = pod["metadata"]["uid"]

    def gone() -> bool:
        now = launcher(admin, name)
        return now is None or now["metadata"]["uid"] != uid

    eventually(f"{name} has ended", gone)


def start_all(admin: Admin, kubelet: Kubelet) -> None:
    """Each job into its state."""
    kubelet.hold = lambda pod: pod["metadata"]["name"].startswith("waiting-0-worker")
    for name in NAMES:
        kind = kind_of(name)
        if kind == "created":
            submit(admin, job(2, name))
        elif kind == "suspended":
            begin(admin, "Suspended", suspend=True, name=name)
        else:
            begin(admin, "Created" if kind == "waiting" else "Running", name=name,
                  tries=0 if kind == "failed" else 3)  # fmt: skip
    for name in NAMES:
        kind = kind_of(name)
        if kind == "retrying":
            end(admin, kubelet, name, 1)
            eventually("a second try", lambda name=name: launcher(admin, name) is not None)  # type: ignore[misc]
        elif kind in ("succeeded", "failed"):
            end(admin, kubelet, name, 7 if kind == "failed" else 0)
            word = "Failed" if kind == "failed" else "Succeeded"
            conditions = [told("Created", "True"), told(word, "True")]
            at = conditions[1]["lastTransitionTime"]
            status = {"conditions": conditions, "startTime": at, "completionTime": at}
            admin.patch(f"{JOBS}/mpijobs/{name}/status", {"status": status})
    eventually("all run", lambda: all(launcher(admin, name) for name in NAMES
               if kind_of(name) in ("running", "retrying", "waiting")))  # fmt: skip


def pods(admin: Admin, but: tuple[str, ...] = ()) -> dict[str, str]:
    """The phase of each pod by its uid; `but` those of these jobs."""
    return {
        pod["metadata"]["uid"]: pod["status"].get("phase", "")
        for pod in admin.pods()
        if not pod["metadata"]["name"].startswith(but or ("\0",))
    }


def held(admin: Admin) -> dict[str, set[str]]:
    """The conditions that hold, by job."""
    return {
        one["metadata"]["name"]: {
            c["type"] for c in one.get("status", {}).get("conditions", ()) if c["status"] == "True"
        }
        for one in admin.every(f"{JOBS}/mpijobs")
    }


def children(admin: Admin, names: list[str]) -> dict[tuple[str, str], Object]:
    """What the operator made for jobs, but for what changes by itself."""
    found: dict[tuple[str, str], Object] = {}
    for path in CHILDREN:
        for one in admin.every(path):
            owners = one["metadata"].get("ownerReferences") or ()
            if any(owner["name"] in names for owner in owners):
                kept: Object = {key: one[key] for key in ("spec", "data", "type") if key in one}
                kept["owners"] = owners
                found[path, one["metadata"]["uid"]] = kept
    return found


def looks(ours: Controller) -> float:
    return sum(ours.metric(LOOKS.format(result)) for result in RESULTS)


def results(admin: Admin) -> dict[str, Object]:
    return {n: admin.job(n)["status"] for n in NAMES if kind_of(n) in ("succeeded", "failed")}


def test_twenty_jobs_are_taken_over_and_given_back_without_a_restart_or_a_lost_status(
    admin: Admin, kubelet: Kubelet
) -> None:
    assert len(NAMES) == 20
    start_all(admin, kubelet)
    before, states, ended = pods(admin), held(admin), results(admin)
    lasting = [name for name in NAMES if kind_of(name) not in ("suspended", "created")]
    things = children(admin, lasting)
    with Controller.alone(admin.spec.kubeconfig, admin.namespace) as ours:
        eventually("ours has looked at all", lambda: looks(ours) >= len(NAMES), 120)
        until(admin, "Running", "created-0", 120)
        time.sleep(5)  # what does not happen has no event
        assert pods(admin, ("created-0",)) == before
        now = held(admin)
        lost = {name: kinds - now[name] for name, kinds in states.items() if kinds - now[name]}
        assert lost == {}
        assert results(admin) == ended
        assert children(admin, lasting) == things
        for name in ("running-0", "running-1", "retrying-0"):
            end(admin, kubelet, name)
        for name in ("running-0", "running-1", "retrying-0"):
            until(admin, "Succeeded", name, 120)
        admin.change("suspended-0", suspend=False)
        until(admin, "Running", "suspended-0", 120)
    given = {one["metadata"]["name"]: one for one in admin.every(f"{JOBS}/mpijobs")}
    between = pods(admin)
    kubectl = Kubectl(admin.spec)
    theirs = source_of(MPI_OPERATOR) / "manifests/base/kubeflow.org_mpijobs.yaml"
    try:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(theirs))
        time.sleep(5)  # until the server reads by it
        for name, one in given.items():
            found = admin.job(name)
            assert found["status"] == one["status"], name
            assert found["spec"] == one["spec"], name
        assert pods(admin) == between
        assert before.keys() - between.keys() <= set(), "a pod that was there is gone"
        left = [name for name in lasting if name not in ("running-0", "running-1", "retrying-0")]
        assert children(admin, left).keys() <= things.keys()
        assert len(children(admin, left)) == 4 * len(left)
    finally:
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
