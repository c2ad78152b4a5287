"""Wishes that need the user's own right; each is one that the controller could be used for."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.errors import Path
from mpi_trainer.webhook import deputy
from tests.unit.api.building import CONTAINER, LAUNCHER_POD, POD
from tests.unit.webhook.test_quota import made


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ((*LAUNCHER_POD, "serviceAccountName"), "deployer", "serviceAccountName"),
        ((*POD, "nodeName"), "node1", "nodeName"),
        ((*POD, "priorityClassName"), "system-node-critical", "priorityClassName"),
        ((*POD, "hostNetwork"), True, "hostNetwork"),
        ((*POD, "hostPID"), True, "hostPID"),
        ((*POD, "hostIPC"), True, "hostIPC"),
        ((*POD, "volumes"), [{"name": "a", "hostPath": {"path": "/"}}], "volumes[0].hostPath.path"),
        (
            (*POD, "volumes"),
            [{"name": "a", "secret": {"secretName": "other-ssh"}}],
            "secret.secretName",
        ),
        ((*CONTAINER, "securityContext"), {"privileged": True}, "securityContext.privileged"),
        ((*CONTAINER, "envFrom"), [{"secretRef": {"name": "other-ssh"}}], "secretRef.name"),
        (
            (*CONTAINER, "env"),
            [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "other-ssh", "key": "k"}}}],
            "secretKeyRef.name",
        ),
    ],
)
def test_wish_is_a_claim_on_its_field(path: Path, value: Any, field: str) -> None:
    found = deputy.claims(made((path, value)))
    assert len(found) == 1
    assert found[0].refusal("eve").field.endswith(field)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*POD, "serviceAccountName"), "default"),
        ((*POD, "volumes"), [{"name": "a", "secret": {"secretName": "train-ssh"}}]),
        ((*POD, "volumes"), [{"name": "a", "secret": {"secretName": "s3-credentials"}}]),
        ((*CONTAINER, "envFrom"), [{"secretRef": {"name": "s3"}}]),
    ],
)
def test_what_every_user_of_jobs_may_ask_for_is_no_claim(path: Path, value: Any) -> None:
    assert not deputy.claims(made((path, value)))


def test_refusal_says_who_lacks_which_right() -> None:
    claim = deputy.claims(made(((*POD, "serviceAccountName"), "deployer")))[0]
    assert str(claim.refusal("eve")) == (
        "spec.mpiReplicaSpecs.Worker.template.spec.serviceAccountName: Forbidden: "
        '"deployer": the pods would act as this service account, and eve may not `create pods` or '
        "`impersonate serviceaccounts/deployer` in this namespace; remove it, or ask an "
        "administrator for that right"
    )
