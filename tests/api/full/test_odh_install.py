"""OPS-1: `odh install` on a real API server: rights first, a dry run, progress, again, and off.

Deployments, ReplicaSets and Jobs are the cluster's own; only what kubelets say is by the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.api.accounts import account
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import NODE, Kubelet
from tests.api.odh import Odh
from tests.api.running import job
from tests.cluster import Kubectl, api_spec, eventually, shared_cluster
from tools.cluster.spec import Spec

HOME = "mpi-trainer"
REGISTRY = "registry.example.com/mirror"

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def api_server() -> Iterator[Spec]:
    """Of its own: what is installed here would judge other tests' jobs."""
    yield from shared_cluster(api_spec("test-installer"))


def odh(spec: Spec) -> Odh:
    return Odh(spec.kubeconfig, "default")


def test_who_lacks_rights_is_told_all_of_them_and_nothing_changes(
    api_server: Spec, tmp_path: Path
) -> None:
    kubectl = Kubectl(api_server)
    someone = account(kubectl, "someone")
    program = Odh(someone.kubeconfig(tmp_path), "default")
    refused = program("install", code=2).stderr
    assert "you lack rights that it takes to install:" in refused
    for line in (
        "get, create, patch clusterroles.rbac.authorization.k8s.io\n",
        "get, create, patch customresourcedefinitions.apiextensions.k8s.io\n",
        "get, create, patch deployments.apps in namespace mpi-trainer\n",
    ):
        assert line in refused
    assert "nothing was changed" in refused
    assert kubectl.attempt("get", "namespace", HOME).returncode


def test_kinds_that_a_profile_needs_and_the_cluster_lacks_are_named_first(
    api_server: Spec,
) -> None:
    refused = odh(api_server)("install", "--profile", "openshift", code=2).stderr
    assert "ServiceMonitor (monitoring.coreos.com/v1)" in refused
    assert Kubectl(api_server).attempt("get", "namespace", HOME).returncode


def test_it_is_installed_once_and_left_alone_then_and_taken_off(api_server: Spec) -> None:
    kubectl, program = Kubectl(api_server), odh(api_server)
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    dry = program("install", "--dry-run")
    assert "deployment/mpi-trainer would be created\n" in dry.stdout
    assert kubectl.attempt("get", "namespace", HOME).returncode
    with closing(Admin(api_server, HOME)) as home, Kubelet(home) as kubelet:
        kubelet.finish = lambda pod: 0 if "release" in pod["metadata"]["name"] else None
        # Nothing answers for the webhook here, and our runtimes are judged by it.
        install = ("install", "--registry", REGISTRY, "--no-runtimes")
        first = program(*install, seconds=300)
        for line in ("customresourcedefinition/mpijobs.kubeflow.org created", "namespace/mpi-"):
            assert line in first.stdout
        assert "deployment/mpi-trainer: ready" in first.stderr
        assert "deployment/mpi-trainer-webhook: ready" in first.stderr
        used = {
            container["image"]
            for one in json.loads(kubectl("get", "deployments", "-A", "-o", "json"))["items"]
            for container in one["spec"]["template"]["spec"]["containers"]
        }
        assert used == {f"{REGISTRY}/mpi-trainer:0.1.0"}
        again = program(*install, seconds=300)
        assert again.stdout == "", "nothing is changed twice"
        assert "unchanged" in again.stderr
        upgraded = program("install", "--registry", "other.example.com", "--dry-run")
        unjudged = "clustertrainingruntime/mpi-openmpi-cpu would be judged by admission, which does"
        assert unjudged in upgraded.stdout, "and it keeps nobody from installing what mends it"
        assert "deployment/mpi-trainer would be changed\n" in upgraded.stdout
        removed(program, home, kubectl)


def removed(program: Odh, home: Admin, kubectl: Kubectl) -> None:
    """Jobs, runtimes and definitions stay."""
    dry = program("uninstall", "--dry-run", "--registry", REGISTRY)
    assert "deployment/mpi-trainer would be deleted\n" in dry.stdout
    refused = program("uninstall", data="n\n", code=130)
    assert "take the controller off" in refused.stderr
    # Nobody serves admission here, so the job is made where it is not asked.
    home.create(f"{JOBS}/mpijobs", job(name="stays", suspend=True))
    done = program("uninstall", "--yes", "--registry", REGISTRY, seconds=400)
    assert "deployment/mpi-trainer deleted\n" in done.stdout
    assert "kept: jobs, runtimes" in done.stderr
    hooks: Object = json.loads(kubectl("get", "validatingwebhookconfigurations", "-o", "json"))
    assert hooks["items"] == []
    assert kubectl("get", "crd", "mpijobs.kubeflow.org", "-o", "name")
    eventually("the namespace goes", lambda: bool(kubectl.attempt("get", "ns", HOME).returncode))
    without = program("install", "--no-admission", seconds=300)
    assert "clustertrainingruntime/mpi-openmpi-cpu created\n" in without.stdout
    assert "webhook" not in without.stdout
    assert "clustertrainingruntime" not in program("uninstall", "--dry-run").stdout
