"""What is new is asked of whoever brings it, with real tokens (S-4, S-6, C-3, C-4, W-1, W-2, W-7).

The attacks of `test_attacks.py` and every field of a pod that needs a right: as a new object, as a
replacement and as a patch, in MPIJobs, TrainJobs and runtimes, with the right to make pods and
without.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.accounts import Account, with_token
from tests.api.admission import samples
from tests.api.admission.cases import POD, POLICY, ROLES, Change, job
from tests.api.admission.serving import Server, quota
from tests.api.admission.test_attacks import ATTACKS
from tests.cluster import Kubectl, eventually
from tests.unit.api.building import changed
from tests.unit.api.traincases import KUEUE, PATCHES
from tests.unit.api.trainers import patch, runtime, train_job
from tools.cluster.spec import Spec

Object = dict[str, Any]

MPIJOBS = ("kubeflow.org/v2beta1", "mpijobs")
TRAINJOBS = ("trainer.kubeflow.org/v1alpha1", "trainjobs")
RUNTIMES = ("trainer.kubeflow.org/v1alpha1", "trainingruntimes")
UNCHECKED = {"trainer.kubeflow.org/webhook-validation": "disabled"}
SUSPEND: Change = ((*POLICY, "suspend"), True)
HELD: Change = (("spec", "suspend"), True)
NEAR: Change = (("spec", "runtimeRef"), {"name": "near", "kind": "TrainingRuntime"})

PLAIN: Object = {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "x"}]}}

ROLE: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "Role",
    "metadata": {"name": "runtimes"},
    "rules": [
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["trainingruntimes"],
            "verbs": ["get", "create", "update", "patch"],
        }
    ],
}
# What no job may have, whoever asks.
NEVER_TAKEN = ("Unknown field", "MPI jobs run on Linux nodes")
# What Kueue's own ClusterRole lets it do to jobs.
QUEUE_ROLE: Object = {
    **ROLE,
    "metadata": {"name": "queue"},
    "rules": [
        {
            "apiGroups": ["kubeflow.org", "trainer.kubeflow.org"],
            "resources": ["mpijobs", "trainjobs"],
            "verbs": ["get", "list", "watch", "update", "patch"],
        },
        {
            "apiGroups": [""],
            "resources": ["pods"],
            "verbs": ["get", "list", "watch", "update", "patch", "delete"],
        },
    ],
}


class Team:
    """`eve` runs jobs and writes runtimes, `pat` may make pods too, `queue` is Kueue."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.eve, self.pat, self.queue = (
            with_token(kubectl, name) for name in ("eve", "pat", "queue")
        )

    def path(self, kind: tuple[str, str], name: str = "", dry: bool = True) -> str:
        where = f"/apis/{kind[0]}/namespaces/{self.kubectl.namespace}/{kind[1]}"
        return f"{where}{'/' + name if name else ''}{'?dryRun=All' if dry else ''}"

    def said(self, who: Account, how: str, kind: tuple[str, str], new: Object) -> str:
        """What the API server answers to a try: nothing where it would be done."""
        name = new["metadata"]["name"]
        if how == "POST":
            code, body = who.request("POST", self.path(kind), fresh(new))
        elif how == "PUT":
            there = self.kubectl.read(self.path(kind, name, dry=False))
            version = there["metadata"]["resourceVersion"]
            meta = {**new["metadata"], "resourceVersion": version}
            code, body = who.request("PUT", self.path(kind, name), {**new, "metadata": meta})
        else:
            change = {"spec": new["spec"], "metadata": {"labels": new["metadata"].get("labels")}}
            code, body = who.request("PATCH", self.path(kind, name), change)
        return "" if code < 300 else f"{code} {body['message']}"


def fresh(new: Object) -> Object:
    """Under a name that is free."""
    return {**new, "metadata": {**new["metadata"], "name": f"{new['metadata']['name']}-x"}}


def bare(data: Object) -> Object:
    """Without the namespace that the unit tests' objects have."""
    data["metadata"].pop("namespace", None)
    return data


def near_runtime(template: Object | None = None, **labels: str) -> Object:
    """A TrainingRuntime whose nodes have this pod template."""
    data = changed(runtime(), [(("kind",), "TrainingRuntime"), (("metadata", "name"), "near")])
    if template is not None:
        content = copy.deepcopy(template)
        content["spec"]["containers"][0]["name"] = "node"
        jobs = data["spec"]["template"]["spec"]["replicatedJobs"]
        jobs[0]["template"]["spec"]["template"] = content
    if labels:
        data["metadata"]["labels"] = labels
    return bare(data)


def mpijob_with(template: Object) -> Object:
    return job("there", SUSPEND, ((*ROLES, "Worker", "template"), copy.deepcopy(template)))


@pytest.fixture(scope="module")
def team(webhook: Server, api_server: Spec) -> Iterator[Team]:
    name = f"rights-{secrets.token_hex(3)}"
    kubectl = Kubectl(api_server, name)
    meta = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    kubectl.apply(ROLE, QUEUE_ROLE)
    for account in ("eve", "pat", "queue", "admin"):
        kubectl("create", "serviceaccount", account)
    for account, role in (
        ("eve", "--clusterrole=mpijob-user"),
        ("eve", "--role=runtimes"),
        ("pat", "--clusterrole=mpijob-user"),
        ("pat", "--clusterrole=edit"),
        ("pat", "--role=runtimes"),
        ("queue", "--role=queue"),
    ):
        binding = f"{account}-{role.rpartition('=')[2]}"
        kubectl("create", "rolebinding", binding, role, f"--serviceaccount={name}:{account}")
    eventually("account", lambda: not kubectl.attempt("get", "sa", "default").returncode)
    made = Team(kubectl)
    kubectl.apply(near_runtime(), mpijob_with(PLAIN))
    kubectl.apply(bare(train_job(NEAR, HELD, (("metadata", "name"), "there"))))
    yield made
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("how", ["POST", "PUT", "PATCH"])
def test_attacks_come_in_by_no_endpoint(team: Team, how: str) -> None:
    """S-4, W-1, W-2: not as a new job, a replacement or a patch of a harmless suspended one."""
    for change, words in ATTACKS:
        attack = job("there", SUSPEND, copy.deepcopy(change))
        said = team.said(team.eve, how, MPIJOBS, attack)
        assert words in said, (change, said)
        assert "eve may not" in said
        assert "pat may not" not in team.said(team.pat, how, MPIJOBS, attack)


@pytest.mark.parametrize("how", ["POST", "PATCH"])
def test_every_field_that_needs_a_right_is_asked_of_who_brings_it(team: Team, how: str) -> None:
    """S-6, W-7: each field of the pod schema that is not harmless, in a job and in a runtime."""
    passed = []
    for path in samples.fields():
        template = samples.template(path)
        for kind, new in (
            (MPIJOBS, mpijob_with(template)),
            (RUNTIMES, near_runtime(template)),
            (RUNTIMES, near_runtime(template, **UNCHECKED)),
        ):
            said = team.said(team.eve, how, kind, new)
            if "eve may not" not in said and not any(words in said for words in NEVER_TAKEN):
                passed.append((path, kind[1], said))
    assert passed == []


def test_who_may_make_pods_brings_every_field(team: Team) -> None:
    for path in samples.fields():
        said = team.said(team.pat, "PATCH", MPIJOBS, mpijob_with(samples.template(path)))
        assert "pat may not" not in said, (path, said)


@pytest.mark.parametrize("how", ["POST", "PUT", "PATCH"])
def test_trainjob_brings_nothing_by_its_patches(team: Team, how: str) -> None:
    for pod, words in (
        ({"serviceAccountName": "admin"}, "act as this service account"),
        ({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}, "folder of their node"),
        ({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}, "kernel"),
        (
            {"containers": [{"name": "node", "securityContext": {"privileged": True}}]},
            "full control of its node",
        ),
    ):
        new = train_job(
            NEAR, HELD, (("metadata", "name"), "there"), (PATCHES, [patch("node", **pod)])
        )
        said = team.said(team.eve, how, TRAINJOBS, bare(new))
        assert words in said
        assert "eve may not" in said
        assert "pat may not" not in team.said(team.pat, how, TRAINJOBS, new)


def test_trainjob_brings_what_its_namespaced_runtime_says(team: Team) -> None:
    template = samples.template("spec.serviceAccountName")
    borrowing = changed(near_runtime(template), [(("metadata", "name"), "borrowing")])
    team.kubectl.apply(borrowing)
    ref = (("spec", "runtimeRef"), {"name": "borrowing", "kind": "TrainingRuntime"})
    said = team.said(team.eve, "POST", TRAINJOBS, bare(train_job(ref)))
    assert "spec.runtimeRef.name: Forbidden" in said
    assert team.said(team.pat, "POST", TRAINJOBS, bare(train_job(ref))) == ""


def test_who_changes_the_program_of_a_job_needs_what_the_job_holds(team: Team) -> None:
    """A colleague's account is not for a program of mine; to suspend and to label needs nothing."""
    account: Change = ((*POD, "serviceAccountName"), "admin")
    name: Change = (("metadata", "name"), "pats")
    team.kubectl.apply(job("pats", SUSPEND, account))
    image: Change = ((*POD, "containers", 0, "image"), "example.com/evil:1")
    assert "eve may not" in team.said(
        team.eve, "PATCH", MPIJOBS, job("x", SUSPEND, account, image, name)
    )
    assert team.said(team.pat, "PATCH", MPIJOBS, job("x", SUSPEND, account, image, name)) == ""
    label: Change = (("metadata", "labels"), {"team": "a"})
    assert team.said(team.eve, "PATCH", MPIJOBS, job("x", account, label, name)) == ""


def test_queue_starts_stops_and_places_jobs_with_accounts_that_are_not_its_own(team: Team) -> None:
    """C-4: with Kueue's rights only, done and not only tried."""
    account: Change = ((*POD, "serviceAccountName"), "admin")
    team.kubectl.apply(job("queued", SUSPEND, account))
    template = samples.template("spec.serviceAccountName")
    team.kubectl.apply(changed(near_runtime(template), [(("metadata", "name"), "accounts")]))
    ref = (("spec", "runtimeRef"), {"name": "accounts", "kind": "TrainingRuntime"})
    named = (("metadata", "name"), "queued")
    team.kubectl.apply(bare(train_job(named, ref, HELD, (PATCHES, [KUEUE]))))
    places = {
        "nodeSelector": {"flavor": "a100"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
    }
    marks = {"labels": {"kueue.x-k8s.io/podset": "worker"}, "annotations": {"a": "b"}}
    placed = patch("node", "kueue.x-k8s.io/manager", **places)
    for kind, start, stop in (
        (
            MPIJOBS,
            [
                (("spec", "runPolicy", "suspend"), False),
                *(((*POD, key), value) for key, value in places.items()),
                ((*POD[:-1], "metadata"), marks),
            ],
            [(("spec", "runPolicy", "suspend"), True)],
        ),
        (
            TRAINJOBS,
            [(("spec", "suspend"), False), (PATCHES, [placed])],
            [HELD, (PATCHES, [KUEUE])],
        ),
    ):
        where = team.path(kind, "queued", dry=False)
        for changes in (start, stop, start):
            _, there = team.queue.request("GET", where)
            code, body = team.queue.request("PUT", where, changed(there, copy.deepcopy(changes)))
            assert code == 200, body


def test_queue_brings_no_account_of_its_own(team: Team) -> None:
    stolen = job("there", SUSPEND, ((*POD, "serviceAccountName"), "admin"))
    assert "queue may not" in team.said(team.queue, "PUT", MPIJOBS, stolen)


@pytest.mark.parametrize("how", ["PUT", "PATCH"])
def test_more_workers_than_the_quota_are_refused_at_a_change(team: Team, how: str) -> None:
    """W-1: 8 replicas over quota by update."""
    quota(team.kubectl, {"count/pods": "4"})
    grown = changed(
        mpijob_with(PLAIN), [((*ROLES, "Worker", "replicas"), 8), ((*POLICY, "suspend"), False)]
    )
    said = team.said(team.eve, how, MPIJOBS, grown)
    team.kubectl("delete", "resourcequota", "team")
    assert "Worker.replicas: Forbidden: quota exceeded: asks for 9" in said
