"""Who may make what belongs to a job, by the API server's own policies (S-10, S-11, C-15).

No webhook serves here: what is allowed and refused below needs no process of ours.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.admission.cases import job as mpijob
from tests.api.admission.serving import ACCOUNT, install, rendered
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

JOB_CONTROLLER = "system:serviceaccount:kube-system:job-controller"
REFUSED = "only its controller"
PLAIN = {"app": "x"}
"""a Job without any label gets its template's, and two policies refuse it"""
OURS = {
    "training.kubeflow.org/operator-name": "mpi-operator",
    "training.kubeflow.org/job-name": "victim",
    "training.kubeflow.org/job-role": "launcher",
}
TRAIN = {"mpi-trainer.opendatahub.io/trainjob": "victim"}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def team(api_server: Spec) -> Iterator[Kubectl]:
    """A namespace where pat may make pods, Jobs and ConfigMaps, and the policies are in force."""
    name = f"team-{secrets.token_hex(3)}"
    kubectl = Kubectl(api_server, name)
    install(kubectl)
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kubectl.attempt("create", "serviceaccount", "pat")
    account = f"--serviceaccount={name}:pat"
    kubectl("create", "rolebinding", "pat-edits", "--clusterrole=edit", account)
    eventually("in force", lambda: REFUSED in made(kubectl, "pat", pod("probe", OURS), dry=True))
    yield kubectl
    kubectl("delete", "namespace", name, "--wait=false")


def made(kubectl: Kubectl, user: str, content: Object, *, dry: bool = False) -> str:
    """What the user hears who creates it."""
    flags = ["--dry-run=server"] if dry else []
    answer = kubectl.attempt(
        "create", f"--as={who(kubectl, user)}", *flags, "-f", "-", data=json.dumps(content)
    )
    return answer.stdout + answer.stderr


def tried(kubectl: Kubectl, content: Object) -> str:
    """What an administrator hears who creates it for a try."""
    flags = ("create", "--dry-run=server", "-f", "-")
    return kubectl.attempt(*flags, data=json.dumps(content)).stderr


def who(kubectl: Kubectl, user: str) -> str:
    return user if ":" in user else f"system:serviceaccount:{kubectl.namespace}:{user}"


def patched(kubectl: Kubectl, user: str, what: str, name: str, change: Object) -> str:
    flags = ("--type=merge", "-p", json.dumps(change), f"--as={who(kubectl, user)}")
    answer = kubectl.attempt("patch", what, name, *flags)
    return answer.stdout + answer.stderr


def owner(kind: str, uid: str = "1", group: str = "kubeflow.org/v2beta1") -> Object:
    return {"apiVersion": group, "kind": kind, "name": "victim", "uid": uid, "controller": True}


def named(kind: str, name: str, labels: Object | None = None, *owners: Object) -> Object:
    version = "batch/v1" if kind == "Job" else "v1"
    meta: Object = {"name": name, "labels": labels or {}, "ownerReferences": list(owners)}
    return {"apiVersion": version, "kind": kind, "metadata": meta}


def pod(name: str, labels: Object | None = None, *owners: Object) -> Object:
    spec = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}
    return {**named("Pod", name, labels, *owners), "spec": spec}


def job(name: str, labels: Object, template: Object, *owners: Object) -> Object:
    inside = {"metadata": {"labels": template}, "spec": pod("x")["spec"]}
    spec = {"suspend": True, "template": inside}
    return {**named("Job", name, labels, *owners), "spec": spec}


@pytest.mark.parametrize("labels", [OURS, TRAIN], ids=["MPIJob", "TrainJob"])
def test_nobody_but_the_controller_makes_pods_with_a_jobs_labels(
    team: Kubectl, labels: Object
) -> None:
    """S-10, S-11, CTL-6: the labels open the job's network."""
    assert REFUSED in made(team, "pat", pod("spy", labels))
    assert "created" in made(team, ACCOUNT, pod("own", labels), dry=True)
    assert "created" in made(team, "pat", pod("plain", {"app": "x"}), dry=True)
    others = {"training.kubeflow.org/operator-name": "pytorchjob-controller"}
    assert "created" in made(team, "pat", pod("torch", others), dry=True)


@pytest.mark.parametrize("kind", ["Pod", "Job", "ConfigMap", "Secret", "Service"])
@pytest.mark.parametrize("holder", ["MPIJob", "TrainJob"])
def test_nobody_else_makes_an_object_that_a_job_controls(
    team: Kubectl, kind: str, holder: str
) -> None:
    """S-5, S-10: an owner reference can name any uid."""
    group = "kubeflow.org/v2beta1" if holder == "MPIJob" else "trainer.kubeflow.org/v1alpha1"
    of_job = owner(holder, group=group)
    content = {
        "Pod": pod("forged", {}, of_job),
        "Job": job("forged", {}, {}, of_job),
        "Service": {**named("Service", "forged", {}, of_job), "spec": {"clusterIP": "None"}},
    }.get(kind) or named(kind, "forged", {}, of_job)
    assert REFUSED in made(team, "pat", content)
    assert "created" in made(team, ACCOUNT, content, dry=True)
    del content["metadata"]["ownerReferences"][0]["controller"]
    assert "created" in made(team, "pat", content, dry=True), "the code that a client ships"


def test_a_launchers_pod_comes_from_the_job_controller_and_a_job_of_the_controller(
    team: Kubectl,
) -> None:
    """S-10: whoever cannot bring the labels in by a template gets no pod with them either."""
    of_job = owner("Job", group="batch/v1")
    assert "created" in made(team, JOB_CONTROLLER, pod("l", OURS, of_job), dry=True)
    assert REFUSED in made(team, JOB_CONTROLLER, pod("orphan", OURS))
    assert REFUSED in made(team, JOB_CONTROLLER, pod("both", OURS, owner("MPIJob")))
    assert "belong to an MPI job" in made(team, "pat", job("smuggler", PLAIN, OURS))
    assert "belong to an MPI job" in made(team, "pat", job("smuggler", PLAIN, TRAIN))
    assert REFUSED in made(team, "pat", job("labelled", OURS, {}))
    assert "created" in made(team, ACCOUNT, job("launcher", OURS, OURS), dry=True)
    assert "created" in made(team, "pat", job("plain", {"a": "b"}, {"a": "b"}))
    template = {"spec": {"template": {"metadata": {"labels": TRAIN}}}}
    assert "belong to an MPI job" in patched(team, "pat", "job", "plain", template)


def test_jobset_makes_the_jobs_of_its_templates(team: Kubectl) -> None:
    """By its right to write the status of JobSets, under whatever name it runs."""
    sets = owner("JobSet", group="jobset.x-k8s.io/v1alpha2")
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "jobset"},
        "rules": [
            {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets/status"], "verbs": ["*"]},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
        ],
    }
    team.apply(role)
    team.attempt("create", "serviceaccount", "jobset")
    account = f"--serviceaccount={team.namespace}:jobset"
    team("create", "rolebinding", "jobset", "--role=jobset", account)
    assert "created" in made(team, "jobset", job("set-node-0", {}, TRAIN, sets), dry=True)
    assert "belong to an MPI job" in made(team, "jobset", job("alone", PLAIN, TRAIN))
    assert "belong to an MPI job" in made(team, "pat", job("false", PLAIN, TRAIN, sets))


def test_labels_and_owners_of_what_exists_change_only_by_the_controller(team: Kubectl) -> None:
    team.apply(pod("there"))
    labels: Object = {"metadata": {"labels": OURS}}
    owners: Object = {"metadata": {"ownerReferences": [owner("MPIJob")]}}
    assert REFUSED in patched(team, "pat", "pod", "there", labels)
    assert REFUSED in patched(team, "pat", "pod", "there", owners)
    assert "patched" in patched(team, "pat", "pod", "there", {"metadata": {"labels": {"a": "b"}}})
    assert "patched" in patched(team, ACCOUNT, "pod", "there", labels)
    gone: Object = {"metadata": {"labels": dict.fromkeys(OURS)}}
    assert REFUSED in patched(team, "pat", "pod", "there", gone)


@pytest.fixture(params=["admission", "admission-before-1.30"])
def down(request: pytest.FixtureRequest, team: Kubectl) -> Iterator[None]:
    """The webhooks of an overlay in front of this namespace, and nobody who answers."""
    hooks = [o for o in rendered(team, f"overlays/{request.param}", set()) if o.get("webhooks")]
    here = {"matchLabels": {"kubernetes.io/metadata.name": team.namespace}}
    for one in hooks:
        one["metadata"]["name"] = "down.mpi-trainer.opendatahub.io"
        for hook in one["webhooks"]:
            hook["clientConfig"] = {"url": "https://127.0.0.1:1/"}
            hook["namespaceSelector"] = here
    yield from applied(team, hooks)


def applied(team: Kubectl, hooks: list[Object]) -> Iterator[None]:
    held = pod("held", OURS)
    held["metadata"]["finalizers"] = ["mpi-trainer.opendatahub.io/evidence"]
    team.apply(held)
    team.apply(*hooks)
    try:
        eventually("is down", lambda: "failed calling webhook" in tried(team, mpijob("x")), 40)
        yield
    finally:
        for one in hooks:
            team("delete", one["kind"].lower(), one["metadata"]["name"])


def test_a_finalizer_goes_though_no_webhook_answers(team: Kubectl, down: None) -> None:
    """C-15: a pod of a job was kept from ending for as long as admission was down."""
    team("delete", "pod", "held", "--wait=false", "--grace-period=0", "--force")
    free: Object = {"metadata": {"finalizers": None}}
    assert "patched" in patched(team, "pat", "pod", "held", free)
    eventually("gone", lambda: bool(team.attempt("get", "pod", "held").returncode))


def test_files_that_run_in_everybodys_pods_are_the_controllers(team: Kubectl) -> None:
    """S-8: also for who may change ConfigMaps in general."""
    scripts = {**named("ConfigMap", "mpi-agent-0-1-0"), "data": {"launch.sh": "true"}}
    assert "only their controller writes it" in made(team, "pat", scripts)
    assert "created" in made(team, ACCOUNT, scripts)
    team.apply(mpijob("victim"))
    of_job = owner("MPIJob", team.get("mpijob", "victim")["metadata"]["uid"])
    team.apply({**named("ConfigMap", "victim-config", {}, of_job), "data": {"hostfile": "a"}})
    for name in ("mpi-agent-0-1-0", "victim-config"):
        change: Object = {"data": {"launch.sh": "steal"}}
        assert "only their controller writes it" in patched(team, "pat", "cm", name, change)
        assert "patched" in patched(team, "pat", "cm", name, {"metadata": {"labels": {"a": "b"}}})
        team("patch", "cm", name, "--type=merge", "-p", json.dumps(change))


def test_admissions_own_account_makes_no_pod_but_for_a_try(team: Kubectl) -> None:
    """S-14: no role can say that."""
    webhook = ACCOUNT.replace(":mpi-trainer:mpi-trainer", ":mpi-trainer:mpi-trainer-webhook")
    assert "created" in made(team, webhook, pod("tried"), dry=True)
    assert "never makes one" in made(team, webhook, pod("tried"))
