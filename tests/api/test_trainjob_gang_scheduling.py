"""PodGroups of TrainJobs on a real API server, as their runtime's podGroupPolicy says (CTL-5)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.admin import Admin, Object
from tests.api.running import Controller
from tests.api.test_gang_scheduling import COSCHEDULING, DEFINITIONS, VOLCANO, define, group, spec
from tests.api.trainjob_lab import (
    TRAIN,
    admin,
    api_server,
    job_set,
    mpi_runtime,
    runtime,
    submit,
    train_job,
)
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

__all__ = ["admin", "api_server"]


@pytest.fixture
def defined(api_server: Spec) -> Iterator[None]:
    kubectl = Kubectl(api_server)
    define(kubectl)
    yield
    kubectl("delete", "-f", str(DEFINITIONS))


@pytest.fixture
def controller(admin: Admin, defined: None) -> Iterator[Controller]:
    with Controller.alone(admin.spec.kubeconfig, admin.namespace) as one:
        yield one
        assert '"logger":"mpi_trainer.runtime.workers","msg":"failed' not in one.log(), one.log()


def with_policy(made: Object, policy: Object) -> Object:
    return {**made, "spec": {**made["spec"], "podGroupPolicy": policy}}


def pod_of(made: Object, name: str) -> Object:
    (found,) = (one for one in made["spec"]["replicatedJobs"] if one["name"] == name)
    template: Object = found["template"]["spec"]["template"]
    return template


def test_coscheduling_has_its_group_before_the_jobset_and_while_it_is_not_suspended(
    admin: Admin, controller: Controller
) -> None:
    """CTL-5: nobody waits for a launcher that itself waits for ready nodes."""
    made = mpi_runtime("gang")
    made["spec"]["template"]["spec"]["replicatedJobs"][1]["dependsOn"] = [
        {"name": "node", "status": "Ready"}
    ]
    admin.create(f"{TRAIN}/trainingruntimes", with_policy(made, {"coscheduling": {}}))
    submit(admin, train_job(runtime="gang"))
    one = job_set(admin)
    found = group(admin)
    assert found is not None
    version = int(found["metadata"]["resourceVersion"])
    assert version < int(one["metadata"]["resourceVersion"])
    assert found["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 60}
    for name in ("node", "launcher"):
        labels = pod_of(one, name)["metadata"]["labels"]
        assert labels["scheduling.x-k8s.io/pod-group"] == "pi"
    admin.patch(f"{COSCHEDULING}/pi", {"spec": {"minMember": 9}})
    eventually("put right", lambda: spec(admin)["minMember"] == 2)
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": True}})
    eventually("no group", lambda: group(admin) is None)
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": False}})
    eventually("a group", lambda: group(admin) is not None)


def test_volcano_has_its_group_and_its_scheduler(admin: Admin, controller: Controller) -> None:
    """CTL-5."""
    made = with_policy(runtime("gang", {"torch": {}}), {"volcano": {}})
    made["spec"]["template"]["metadata"] = {
        "annotations": {"scheduling.volcano.sh/queue-name": "research"}
    }
    admin.create(f"{TRAIN}/trainingruntimes", made)
    submit(admin, train_job(runtime="gang", trainer={"numNodes": 3, "command": ["true"]}))
    pod = pod_of(job_set(admin), "node")
    assert spec(admin, path=VOLCANO) == {"minMember": 3, "queue": "research"}
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "pi"
    assert pod["spec"]["schedulerName"] == "volcano"


def test_without_the_definition_an_event_says_what_to_install(admin: Admin) -> None:
    """CTL-5: and the job goes on without."""
    made = with_policy(runtime("gang", {"torch": {}}), {"coscheduling": {}})
    admin.create(f"{TRAIN}/trainingruntimes", made)
    with Controller.alone(admin.spec.kubeconfig, admin.namespace):
        submit(admin, train_job(runtime="gang", trainer={"command": ["true"]}))
        pod = pod_of(job_set(admin), "node")
        eventually("told", lambda: told(admin) != [])
    assert "scheduling.x-k8s.io/pod-group" not in pod["metadata"]["labels"]
    assert "install scheduler-plugins with its coscheduling plugin" in told(admin)[0]


def told(admin: Admin) -> list[str]:
    found = admin.events("TrainJob")
    return [text for _, reason, text in found if reason == "FieldsWithoutEffect"]
