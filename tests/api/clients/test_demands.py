"""One-liners run in namespaces that ask something of every container (W-5).

The quota, the LimitRange and Pod Security are the API server's own; the user holds `mpijob-user`
and nothing else; our controller makes the pods.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.kube.config import load
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.job.mpijob import AsyncMPIJob
from tests.api.accounts import Account, account
from tests.api.admin import Admin, Object
from tests.api.lab import admin, controller, served
from tests.api.odh import Odh
from tests.api.running import Controller
from tests.cluster import Kubectl, eventually

__all__ = ["admin", "controller", "served"]

ROLE = Path(__file__).parents[3] / "manifests" / "roles" / "user.yaml"
IMAGE = "registry.example.com/train:1"
WORDS = ("mpijob", "create", "train", "-w", "2", "--image", IMAGE)
LIMITS = {"limits.cpu": "4", "limits.memory": "8Gi"}
EVERYTHING = {**LIMITS, "requests.cpu": "4", "requests.memory": "8Gi"}
QUOTAS: dict[str, dict[str, str]] = {
    "limits and requests": EVERYTHING,
    "limits alone": LIMITS,
    "requests alone": {"cpu": "4", "memory": "8Gi"},
    "less than usual": {"limits.cpu": "1", "limits.memory": "1Gi"},
}
RANGES: dict[str, dict[str, Any]] = {
    "none": {},
    "gives": {"default": {"cpu": "1", "memory": "1Gi"}},
    "bounds": {"max": {"cpu": "800m"}, "min": {"memory": "300Mi"}},
    "ratio": {"maxLimitRequestRatio": {"cpu": "1", "memory": "1"}},
}


@pytest.fixture
def user(admin: Admin) -> Account:
    kubectl = Kubectl(admin.spec, admin.namespace)
    kubectl.apply(yaml.safe_load(ROLE.read_text()))
    return account(kubectl, f"u{secrets.token_hex(3)}", "mpijob-user")


def strict(admin: Admin, hard: dict[str, str], limits: dict[str, Any]) -> None:
    """The namespace with a quota, a LimitRange and restricted Pod Security."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{admin.namespace}"
    admin.call("PATCH", path, {"metadata": {"labels": labels}}, "application/merge-patch+json")
    if limits:
        item = {"type": "Container", **limits}
        body = {"metadata": {"name": "range"}, "spec": {"limits": [item]}}
        admin.create("api/v1/limitranges", body)
    admin.create("api/v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    found = "api/v1/resourcequotas/q"
    eventually("quota", lambda: "hard" in (admin.get(found) or {}).get("status", {}))


def made(admin: Admin) -> list[Object]:
    """Launcher and workers, once all are there."""
    try:
        eventually("three pods", lambda: len(admin.pods()) == 3, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{admin.events()}") from None
    return admin.pods()


@pytest.mark.parametrize("limits", RANGES)
def test_one_liner_is_taken_whatever_the_limit_range(
    admin: Admin, controller: Controller, user: Account, tmp_path: Path, limits: str
) -> None:
    strict(admin, EVERYTHING, RANGES[limits])
    Odh(user.kubeconfig(tmp_path), admin.namespace)(*WORDS, "--", "python", "train.py")
    for pod in made(admin):
        (prepare,), (main,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
        assert prepare["name"] == "mpi-prepare"
        for container in (prepare, main):
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert container["securityContext"]["runAsNonRoot"]


@pytest.mark.parametrize("hard", QUOTAS)
def test_one_liner_is_taken_whatever_the_quota(
    admin: Admin, controller: Controller, user: Account, tmp_path: Path, hard: str
) -> None:
    strict(admin, QUOTAS[hard], {})
    said = Odh(user.kubeconfig(tmp_path), admin.namespace)(*WORDS, "--", "python", "train.py")
    assert "quota `q` asks every container for resources" in said.stderr
    assert "--launcher-memory" in said.stderr
    assert len(made(admin)) == 3


def test_what_is_said_for_the_launcher_is_the_launchers(
    admin: Admin, controller: Controller, user: Account, tmp_path: Path
) -> None:
    strict(admin, EVERYTHING, {})
    odh = Odh(user.kubeconfig(tmp_path), admin.namespace)
    own = ("--launcher-cpu", "300m", "--launcher-memory", "256Mi", "--cpu", "1", "--memory", "1Gi")
    said = odh(*WORDS, *own, "--", "python", "train.py")
    assert "quota" not in said.stderr
    made(admin)
    (launcher,) = admin.pods("launcher")
    (main,) = launcher["spec"]["containers"]
    assert main["resources"]["limits"] == {"cpu": "300m", "memory": "256Mi"}


def test_sdk_s_job_is_taken_too(
    admin: Admin, controller: Controller, user: Account, tmp_path: Path
) -> None:
    """With a folder that travels along, and so with an init container more."""
    strict(admin, EVERYTHING, {})
    (tmp_path / "work").mkdir()
    (tmp_path / "work/train.py").write_text("print(1)\n")
    heard: list[str] = []
    config = load(user.kubeconfig(tmp_path))
    backend = ClusterBackend(config, heard.append)
    job = AsyncMPIJob(
        "train",
        admin.namespace,
        image=IMAGE,
        command=["python", "train.py"],
        workdir=str(tmp_path / "work"),
        backend=backend,
    )
    asyncio.run(job.create())
    assert any("quota `q` asks every container" in line for line in heard)
    assert all(len(pod["spec"]["initContainers"]) == 2 for pod in made(admin))


def test_plain_namespace_adds_nothing(
    admin: Admin, controller: Controller, user: Account, tmp_path: Path
) -> None:
    Odh(user.kubeconfig(tmp_path), admin.namespace)(*WORDS, "--", "python", "train.py")
    for pod in made(admin):
        (main,) = pod["spec"]["containers"]
        assert main["resources"] == {}
        assert "securityContext" not in main
