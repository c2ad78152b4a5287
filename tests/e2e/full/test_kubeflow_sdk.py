"""The public Kubeflow SDK, unmodified, against our controller: all that it reads and sends.

The SDK is locked in requirements/kubeflow.txt and runs in an environment of its own; its user is
tests/e2e/kubeflow_user.py. API-2, AC-17.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster import Kubectl
from tests.e2e.kubeflow_sdk import Sdk
from tests.unit.manifests.test_runtimes import WANTED

pytestmark = pytest.mark.timeout(600, func_only=True)


@pytest.fixture
def home(shipped_runtimes: tuple[str, ...], namespace: Kubectl) -> Kubectl:
    """A fresh restricted namespace, with our runtimes on the cluster."""
    return namespace


def trainjob(home: Kubectl, name: str) -> dict[str, Any]:
    return home.get("trainjob", name)


def test_it_lists_every_runtime_that_we_ship(kubeflow_sdk: Sdk, home: Kubectl) -> None:
    """Framework label, ancestor step, container `node`, integers: one bad runtime and it lists
    none."""
    found, _ = kubeflow_sdk("runtimes", home)
    assert set(WANTED) <= set(found["listed"])
    kind, framework, image, nodes = found["one"]
    assert (kind, framework, nodes) == ("ClusterTrainingRuntime", "openmpi", 1)
    assert image == "localhost/mpi-openmpi:4.1"
    assert found["command"][:4] == ["mpirun", "--hostfile", "/etc/mpi/hostfile", "bash"]


def test_a_function_runs_on_two_nodes_and_is_followed_to_its_end(
    kubeflow_sdk: Sdk, home: Kubectl
) -> None:
    """Running is seen, so no condition is set before the end; the launcher is node-0 and has all
    ranks' lines; variables reach ranks; integers sent as floats are taken; deleted means gone."""
    found, _ = kubeflow_sdk("function", home)
    running = found["running"]
    assert (running["status"], running["nodes"]) == ("Running", 2)
    assert [step[:2] for step in running["steps"]] == [["node-0", "Running"], ["node-1", "Running"]]
    assert [step[3] for step in running["steps"]] == ["cpu", "cpu"]
    launcher, worker = (step[2].rpartition("-")[0] for step in running["steps"])
    for lines in (found["followed"], found["logs"]):
        assert f"rank 0 sum 1 on {launcher}" in lines
        assert f"rank 1 sum 1 on {worker}" in lines
        assert lines.count("words hello to ranks") == 2
    assert found["done"]["status"] == "Complete"
    assert found["done"]["steps"][0][:2] == ["node-0", "Succeeded"]
    assert "Running" in found["events"]
    assert found["listed"] == [True]
    assert (found["of_runtime"], found["of_another"], found["left"]) == (1, 0, 0)


def test_a_function_that_fails_is_told_at_once(kubeflow_sdk: Sdk, home: Kubectl) -> None:
    """And the cause is there for who asks the API, which the SDK does not."""
    found, _ = kubeflow_sdk("failing", home)
    assert found["status"] == "Failed"
    assert found["error"] == f"TrainJob {found['name']} is Failed"
    (condition,) = trainjob(home, found["name"])["status"]["conditions"]
    assert condition["type"] == "Failed"
    assert "exit code 7" in condition["message"]
    for field in ("lastTransitionTime", "reason", "message"):
        assert condition[field]


def test_it_shows_the_packages_of_a_runtime_by_a_job_of_one_node(
    kubeflow_sdk: Sdk, home: Kubectl
) -> None:
    found, printed = kubeflow_sdk("packages", home)
    assert "Python: 3." in printed
    assert found["left"] == 0


def test_every_option_that_it_has_reaches_the_job_and_its_pods(
    kubeflow_sdk: Sdk, home: Kubectl
) -> None:
    found, _ = kubeflow_sdk("container", home)
    assert found["done"]["status"] == "Complete"
    assert found["logs"].count("here") == 2
    job = trainjob(home, "by-options")
    assert job["metadata"]["labels"]["team"] == "red"
    assert job["metadata"]["annotations"]["example.com/why"] == "test"
    assert job["spec"]["activeDeadlineSeconds"] == 300
    assert job["spec"]["runtimeRef"]["apiGroup"] == "trainer.kubeflow.org"
    for status in job["status"]["jobsStatus"]:
        assert set(status) == {"name", "ready", "succeeded", "failed", "active", "suspended"}
    pods = json.loads(home("get", "pods", "-o", "json"))["items"]
    for pod in pods:
        labels = pod["metadata"]["labels"]
        assert labels["jobset.sigs.k8s.io/jobset-name"] == "by-options"
        assert labels["jobset.sigs.k8s.io/replicatedjob-name"] in ("launcher", "node")
        assert labels["batch.kubernetes.io/job-completion-index"] == "0"
