"""Users cannot reach through the controller for what they could not have alone (SC-009)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.admission.cases import MAIN, POD, Change, job
from tests.api.admission.serving import Server
from tests.cluster import Kubectl
from tools.cluster.spec import Spec


@pytest.fixture(scope="module")
def team(api_server: Spec) -> Iterator[Kubectl]:
    """A namespace without Pod Security, where only admission stands between jobs and nodes."""
    name = f"team-{secrets.token_hex(3)}"
    kubectl = Kubectl(api_server, name)
    meta = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    for account, role in (("eve", "mpijob-user"), ("pat", "edit"), ("pat", "mpijob-user")):
        kubectl.attempt("create", "serviceaccount", account)
        kubectl(
            "create",
            "rolebinding",
            f"{account}-{role}",
            f"--clusterrole={role}",
            f"--serviceaccount={name}:{account}",
        )
    yield kubectl
    kubectl("delete", "namespace", name, "--wait=false")


def tried(kubectl: Kubectl, user: str, content: dict[str, Any]) -> str:
    """What the user hears who creates it, as a try."""
    who = user if ":" in user else f"system:serviceaccount:{kubectl.namespace}:{user}"
    answer = kubectl.attempt(
        "create", "--dry-run=server", f"--as={who}", "-f", "-", data=json.dumps(content)
    )
    return answer.stdout + answer.stderr


ATTACKS: list[tuple[Change, str]] = [
    (((*POD, "serviceAccountName"), "pat"), "act as this service account"),
    (((*POD, "nodeName"), "node1"), "past the scheduler"),
    (((*POD, "priorityClassName"), "system-cluster-critical"), "preempt other pods"),
    (((*POD, "hostNetwork"), True), "share this with their node"),
    (((*POD, "hostPID"), True), "share this with their node"),
    (((*POD, "hostIPC"), True), "share this with their node"),
    (((*POD, "volumes"), [{"name": "r", "hostPath": {"path": "/"}}]), "folder of their node"),
    (((*MAIN, "securityContext"), {"privileged": True}), "full control of its node"),
    (((*POD, "serviceAccount"), "pat"), "act as this service account"),
    (
        ((*MAIN, "securityContext"), {"capabilities": {"add": ["SYS_ADMIN"]}}),
        "not in Pod Security's",
    ),
    (((*MAIN, "securityContext"), {"runAsUser": 0}), "run as root"),
    (((*MAIN, "ports"), [{"containerPort": 80, "hostPort": 80}]), "take a port of their node"),
    (((*POD, "securityContext"), {"sysctls": [{"name": "kernel.msgmax", "value": "9"}]}), "kernel"),
    (((*POD, "runtimeClassName"), "kata"), "this runtime class"),
    (((*POD, "volumes"), [{"name": "k", "secret": {"secretName": "b-ssh"}}]), "keys of other jobs"),
    (((*MAIN, "envFrom"), [{"secretRef": {"name": "b-ssh"}}]), "keys of other jobs"),
]


@pytest.mark.parametrize(("change", "words"), ATTACKS)
def test_who_may_only_run_jobs_cannot_borrow_the_controllers_rights(
    webhook: Server, team: Kubectl, change: Change, words: str
) -> None:
    said = tried(team, "eve", job("attack", change))
    assert words in said
    assert f"system:serviceaccount:{team.namespace}:eve may not" in said


@pytest.mark.parametrize(("change", "words"), ATTACKS[:14])
def test_who_may_make_pods_alone_may_make_them_by_a_job(
    webhook: Server, team: Kubectl, change: Change, words: str
) -> None:
    assert "may not" not in tried(team, "pat", job("own", change))


def test_a_plain_job_of_a_plain_user_is_taken(webhook: Server, team: Kubectl) -> None:
    assert "created" in tried(team, "eve", job("plain"))
