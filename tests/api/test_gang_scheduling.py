"""PodGroups of MPIJobs on a real API server, with their projects' definitions (CTL-5, AC-2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

__all__ = ["admin", "kubelet", "served"]

DEFINITIONS = Path(__file__).parents[1] / "podgroups"
COSCHEDULING = "apis/scheduling.x-k8s.io/v1alpha1/podgroups"
VOLCANO = "apis/scheduling.volcano.sh/v1beta1/podgroups"
LATE = {"launcherCreationPolicy": "WaitForWorkersReady"}


def define(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", str(DEFINITIONS))
    for group in ("scheduling.x-k8s.io", "scheduling.volcano.sh"):
        kind = f"podgroups.{group}"
        eventually(kind, lambda kind=kind: not kubectl.attempt("get", kind).returncode)  # type: ignore[misc]


@pytest.fixture
def defined(served: Spec) -> Iterator[None]:
    """Other tests want a cluster without them."""
    kubectl = Kubectl(served)
    define(kubectl)
    yield
    kubectl("delete", "-f", str(DEFINITIONS))


@pytest.fixture
def gangs(admin: Admin, defined: None) -> Iterator[Controller]:
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, "--gang-scheduling=gangs") as one:
        yield one
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


def group(admin: Admin, name: str = "pi", path: str = COSCHEDULING) -> Object | None:
    return admin.get(f"{path}/{name}")


def spec(admin: Admin, name: str = "pi", path: str = COSCHEDULING) -> Object:
    found = group(admin, name, path)
    assert found is not None, f"no PodGroup {name}"
    made: Object = found["spec"]
    return made


def foreign(admin: Admin, path: str, name: str, members: int) -> None:
    """A PodGroup that is no job's."""
    kind = {"apiVersion": path.removeprefix("apis/").removesuffix("/podgroups"), "kind": "PodGroup"}
    admin.create(path, {**kind, "metadata": {"name": name}, "spec": {"minMember": members}})


def test_the_group_is_there_before_the_job_is_created_and_goes_at_its_end(
    admin: Admin, gangs: Controller, kubelet: Kubelet
) -> None:
    """CTL-5: and its pods name it and the scheduler."""
    submit(admin, job(2, schedulingPolicy={"scheduleTimeoutSeconds": 60}))
    until(admin, "Created")
    assert spec(admin) == {"minMember": 3, "scheduleTimeoutSeconds": 60}
    until(admin, "Running")
    for pod in admin.pods():
        assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "pi"
        assert pod["spec"]["schedulerName"] == "gangs"
    (launcher,) = admin.pods("launcher")
    kubelet.exit(launcher)
    until(admin, "Succeeded")
    eventually("no group", lambda: group(admin) is None)


def test_workers_are_a_gang_without_a_launcher_that_waits_for_them(
    admin: Admin, gangs: Controller, kubelet: Kubelet
) -> None:
    """AC-2: no more pods are waited for than there are, so a gang scheduler places them."""
    submit(admin, job(3, spec=LATE))
    until(admin, "Created")
    assert spec(admin)["minMember"] == 3
    until(admin, "Running")
    assert len(admin.pods("launcher")) == 1


def test_the_group_follows_the_job_and_is_kept(
    admin: Admin, gangs: Controller, kubelet: Kubelet
) -> None:
    """CTL-5: its size, a suspension, and whatever somebody does to it."""
    submit(admin, job(1))
    until(admin, "Running")
    assert spec(admin)["minMember"] == 2
    grown = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}}
    admin.patch(f"{JOBS}/mpijobs/pi", grown)
    eventually("grown", lambda: spec(admin)["minMember"] == 4)
    admin.patch(f"{COSCHEDULING}/pi", {"spec": {"minMember": 9, "minResources": {"cpu": "9"}}})
    eventually("put right", lambda: spec(admin) == {"minMember": 4})
    admin.change(suspend=True)
    until(admin, "Suspended")
    eventually("no group", lambda: group(admin) is None)
    admin.change(suspend=False)
    eventually("a group", lambda: group(admin) is not None)
    until(admin, "Running")


def test_volcano_gets_its_own_group(admin: Admin, defined: None, kubelet: Kubelet) -> None:
    """CTL-5, CTL-10: in the job's queue, which is kept where Volcano has chosen it."""
    policy = {"queue": "research", "priorityClass": "high", "minAvailable": 2}
    with Controller.alone(admin.spec.kubeconfig, admin.namespace, "--gang-scheduling=volcano"):
        submit(admin, job(2, schedulingPolicy=policy))
        submit(admin, job(1, "plain"))
        until(admin, "Running")
        made = spec(admin, path=VOLCANO)
        until(admin, "Running", "plain")
        admin.patch(f"{VOLCANO}/plain", {"spec": {"queue": "team", "minMember": 7}})
        kept = {"minMember": 2, "queue": "team"}
        eventually("put right", lambda: spec(admin, "plain", VOLCANO) == kept)
    assert made == {"minMember": 2, "queue": "research", "priorityClassName": "high"}
    for pod in admin.pods():
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] in ("pi", "plain")
        assert pod["spec"]["schedulerName"] == "volcano"


def test_a_group_of_somebody_else_stays(admin: Admin, gangs: Controller) -> None:
    """CTL-5."""
    foreign(admin, COSCHEDULING, "pi", 7)
    submit(admin, job(1))
    failed = until(admin, "Failed")
    assert "PodGroup pi already exists" in failed["message"]
    assert spec(admin)["minMember"] == 7
    assert admin.pods() == []


def test_without_the_definition_an_event_says_what_to_install(
    admin: Admin, served: Spec, kubelet: Kubelet
) -> None:
    """CTL-5: and the pods are placed one by one, by the scheduler that is there."""
    with Controller.alone(
        admin.spec.kubeconfig, admin.namespace, "--gang-scheduling=volcano"
    ) as one:
        submit(admin, job(1))
        until(admin, "Running")
        assert "the cluster has no podgroups.scheduling.volcano.sh" in one.log()
    (told,) = (text for _, reason, text in admin.events() if reason == "FieldsWithoutEffect")
    assert "so the job's pods are scheduled one by one; install Volcano" in told
    assert {pod["spec"]["schedulerName"] for pod in admin.pods()} == {"default-scheduler"}
