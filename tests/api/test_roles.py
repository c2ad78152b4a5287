"""CTL-7: who may do what, asked of a real API server with real tokens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.api.accounts import VERBS, Account, account, with_token
from tests.cluster import Kubectl, Object, api_spec, define, eventually, restricted, shared_cluster
from tools.cluster.spec import Spec

MANIFESTS = Path(__file__).parents[2] / "manifests"
HOME = "mpi-trainer"
READ = "get list watch"
WRITE = "get list watch create update patch delete"
NOTHING = dict.fromkeys(
    ("secrets", "services", "jobs", "pods/exec", "serviceaccounts", "rolebindings"), ""
)
MATRIX = {
    "mpijob-viewer": NOTHING
    | {
        "mpijobs": READ,
        "mpijobs/status": READ,
        "mpijobs/finalizers": "",
        "trainjobs": READ,
        "trainjobs/status": READ,
        "trainjobs/finalizers": "",
        "trainingruntimes": READ,
        "jobsets": READ,
        "pods": READ,
        "pods/log": "get",
        "events": READ,
        "configmaps": "",
    },
    "mpijob-user": NOTHING
    | {
        "mpijobs": WRITE,
        "mpijobs/status": READ,
        "mpijobs/finalizers": "",
        "trainjobs": WRITE,
        "trainjobs/status": READ,
        "trainjobs/finalizers": "",
        "trainingruntimes": READ,
        "jobsets": READ,
        "pods": READ,
        "pods/log": "get",
        "events": READ,
        "configmaps": "get create",
        "resourcequotas": "get list",
        "limitranges": "get list",
        "persistentvolumeclaims": "get list",
    },
    "mpijob-admin": NOTHING
    | {
        "mpijobs": f"{WRITE} deletecollection",
        "mpijobs/status": f"{READ} update patch",
        "mpijobs/finalizers": "update",
        "trainjobs": f"{WRITE} deletecollection",
        "trainjobs/status": f"{READ} update patch",
        "trainjobs/finalizers": "update",
        "trainingruntimes": WRITE,
        "jobsets": READ,
        "pods": f"{READ} patch delete",
        "pods/log": "get",
        "pods/exec": "get create",
        "events": READ,
        "configmaps": f"{READ} create delete",
        "services": READ,
        "jobs": READ,
    },
}
CONTROLLER = {
    "mpijobs": "list watch patch delete",
    "mpijobs/status": "patch",
    "mpijobs/finalizers": "update",
    "trainjobs": "list watch patch delete",
    "trainjobs/status": "patch",
    "trainjobs/finalizers": "update",
    "trainingruntimes": "get",
    "jobsets": "get list watch create patch delete",
    "pods": "get list watch create patch delete",
    "pods/log": "get",
    "pods/exec": "",
    "jobs": "get list watch create patch delete",
    "services": "get create",
    "configmaps": "get create delete",
    "secrets": "get create delete",
    "events": "create patch",
    "leases": "",
    "deployments": "",
    "serviceaccounts": "",
    "roles": "",
    "rolebindings": "",
}


@pytest.fixture(scope="module")
def api_server() -> Iterator[Spec]:
    """An API server of these tests' own: they bring and take cluster roles."""
    yield from shared_cluster(api_spec("test-roles"))


@pytest.fixture
def installed(kubectl: Kubectl) -> Kubectl:
    define(kubectl, MANIFESTS / "crds", "mpijobs", "clustertrainingruntimes")
    Kubectl(kubectl.spec, HOME)("apply", "-k", str(MANIFESTS / "overlays" / "kubernetes"))
    return kubectl


@pytest.mark.parametrize("role", MATRIX)
def test_a_role_allows_what_its_row_says_and_no_more(
    role: str, installed: Kubectl, namespace: Kubectl
) -> None:
    who = account(namespace, role, role)
    assert who.rights(MATRIX[role], namespace.namespace) == MATRIX[role]
    assert not any(who.may(verb, "mpijobs", "default") for verb in VERBS)


@pytest.mark.parametrize(
    ("cluster_role", "mpijobs"),
    [
        ("view", READ),
        ("edit", WRITE),
        ("admin", f"{WRITE} deletecollection"),
    ],
)
def test_the_cluster_s_own_roles_include_them(
    cluster_role: str, mpijobs: str, installed: Kubectl, namespace: Kubectl
) -> None:
    who = account(namespace, "someone", cluster_role)
    eventually(
        "aggregated",
        lambda: who.rights(["mpijobs"], namespace.namespace) == {"mpijobs": mpijobs},
    )


def test_whoever_is_known_may_read_the_runtimes_of_all_namespaces(
    installed: Kubectl, namespace: Kubectl
) -> None:
    """They belong to no namespace, so that no role bound in one could show them."""
    runtimes = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
    someone = account(namespace, "someone")
    assert someone.rights(["clustertrainingruntimes"], "") == {"clustertrainingruntimes": READ}
    # A new definition's storage is not there at once.
    eventually("they are read", lambda: someone.request("GET", runtimes)[0] == 200)
    assert not someone.may("list", "trainingruntimes", namespace.namespace)


def test_the_runtime_editor_writes_runtimes_of_all_namespaces_and_nothing_else(
    installed: Kubectl, namespace: Kubectl
) -> None:
    """Not by reviews but by doing."""
    runtimes = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
    editor = account(namespace, "editor")
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": f"of-{namespace.namespace}"},
        "spec": {"template": {"spec": {"replicatedJobs": []}}},
    }
    one = f"{runtimes}/of-{namespace.namespace}"
    eventually("they are read", lambda: editor.request("GET", runtimes)[0] == 200)
    assert editor.request("POST", runtimes, runtime)[0] == 403
    subject = f"{namespace.namespace}:editor"
    namespace(
        "create", "clusterrolebinding", f"editor-{namespace.namespace}",
        "--clusterrole=mpi-trainer-runtime-editor", f"--serviceaccount={subject}",
    )  # fmt: skip
    try:
        eventually("created", lambda: editor.request("POST", runtimes, runtime)[0] == 201)
        changed = {"metadata": {"labels": {"team": "a"}}}
        assert editor.request("PATCH", one, changed)[0] == 200
        assert editor.request("DELETE", one)[0] == 200
        for resource in ("trainjobs", "trainingruntimes", "mpijobs", "secrets", "pods"):
            assert not editor.may("create", resource, namespace.namespace), resource
    finally:
        namespace("delete", "clusterrolebinding", f"editor-{namespace.namespace}")


def test_a_user_runs_suspends_and_reads_but_sees_no_secret(
    installed: Kubectl, namespace: Kubectl
) -> None:
    """Not by reviews but by doing."""
    user = account(namespace, "user", "mpijob-user")
    jobs = f"/apis/kubeflow.org/v2beta1/namespaces/{namespace.namespace}/mpijobs"
    core = f"/api/v1/namespaces/{namespace.namespace}"
    assert user.request("POST", jobs, _job())[0] == 201
    assert user.request("PATCH", f"{jobs}/j", {"spec": {"runPolicy": {"suspend": True}}})[0] == 200
    code, read = user.request("GET", f"{jobs}/j")
    assert (code, read["spec"]["runPolicy"]["suspend"]) == (200, True)
    shipped = {"metadata": {"name": "code"}, "data": {"train.py": "print()"}}
    assert user.request("POST", f"{core}/configmaps", shipped)[0] == 201
    for refused in (
        user.request("GET", f"{core}/secrets"),
        user.request("GET", f"{core}/secrets/j-ssh"),
        user.request("POST", f"{core}/secrets", {"metadata": {"name": "s"}}),
        user.request("PATCH", f"{jobs}/j/status", {"status": {"startTime": None}}),
    ):
        assert refused[0] == 403, refused
    assert user.request("DELETE", f"{jobs}/j")[0] == 200


def _job() -> Object:
    pod = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "j"},
        "spec": {"mpiReplicaSpecs": {"Launcher": {"template": pod}}},
    }


def test_the_controller_may_do_what_is_listed_and_no_more(
    installed: Kubectl, namespace: Kubectl
) -> None:
    """Of Secrets: create, get and delete, in any namespace; never list or watch."""
    controller = with_token(Kubectl(installed.spec, HOME), HOME)
    assert controller.rights(CONTROLLER, namespace.namespace) == CONTROLLER
    assert controller.rights(["leases"], HOME) == {"leases": "create"}
    assert _named(controller, "leases", HOME, "mpi-operator") == "get patch"
    assert _named(controller, "leases", HOME, "another") == ""
    assert _named(controller, "leases", namespace.namespace, "mpi-operator") == "get"
    assert _named(controller, "leases", namespace.namespace, "trainer.kubeflow.org") == "get"
    assert _named(controller, "deployments", "mpi-operator", "mpi-operator") == "get"
    # Its own is `get`; the rest is everybody's.
    assert controller.rights(["clustertrainingruntimes"], "") == {"clustertrainingruntimes": READ}


def _named(who: Account, resource: str, namespace: str, name: str) -> str:
    """The verbs on one object, without those that name none."""
    single = ("get", "update", "patch", "delete")
    return " ".join(verb for verb in single if who.may(verb, resource, namespace, name))


def test_a_controller_of_one_namespace_has_no_right_outside_it(
    installed: Kubectl, namespace: Kubectl, tmp_path: Path
) -> None:
    """`--namespaces`: the same rights, in its own namespace alone."""
    place = "one-namespace"
    installed.apply(restricted(place))
    own = {"namespace": place, "resources": [_relative(tmp_path)]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    objects = installed("kustomize", str(tmp_path), "--load-restrictor=LoadRestrictionsNone")
    assert "kind: Cluster" not in objects
    Kubectl(installed.spec, place)("apply", "-f", "-", data=objects)
    controller = with_token(Kubectl(installed.spec, place), HOME)
    inside = {name: verbs for name, verbs in CONTROLLER.items() if name != "leases"}
    assert controller.rights(inside, place) == inside
    outside = controller.rights(CONTROLLER, namespace.namespace)
    assert set(outside.values()) == {""}
    installed("delete", "namespace", place, "--wait=false")


def _relative(folder: Path) -> str:
    """kustomize takes no absolute path."""
    return os.path.relpath(MANIFESTS / "overlays" / "namespaced", folder)


def test_both_variants_of_the_controller_s_rights_are_the_same_rules() -> None:
    def rules(kind: str) -> list[Object]:
        text = (MANIFESTS / "rights" / kind / "rights.yaml").read_text()
        found: list[Object] = next(yaml.safe_load_all(text))["rules"]
        of_cluster = ["clustertrainingruntimes"]
        return [r for r in found if "resourceNames" not in r and r["resources"] != of_cluster]

    assert rules("cluster") == rules("namespace")
