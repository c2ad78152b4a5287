"""The end of a job is told first; what is cleared away afterwards is cleared away for certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpi_trainer.render.names import EVIDENCE
from tests.api.admin import Admin
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.refusing import RefusingProxy
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "kubelet", "served"]

SECRET = "api/v1/secrets/pi-ssh"


def no_secret_goes(method: str, path: str) -> bool:
    return method == "DELETE" and "/secrets/" in path


@pytest.mark.parametrize("restarts", [False, True], ids=["runs on", "is replaced"])
def test_an_end_does_not_wait_for_its_key_and_the_key_is_not_forgotten(
    admin: Admin, kubelet: Kubelet, tmp_path: Path, restarts: bool
) -> None:
    """C-13: the launcher pod's finalizer remembers it, also across controllers."""
    with (
        RefusingProxy(admin.spec, no_secret_goes) as proxy,
        Controller.alone(proxy.kubeconfig(tmp_path), admin.namespace) as one,
    ):
        submit(admin, job(1))
        until(admin, "Running")
        (launcher,) = admin.pods("launcher")
        kubelet.exit(launcher)
        until(admin, "Succeeded", seconds=10)
        eventually("it was tried", lambda: len(proxy.refused) >= 1)
        assert admin.get(SECRET) is not None
        (launcher,) = admin.pods("launcher")
        assert EVIDENCE in launcher["metadata"]["finalizers"]
        if restarts:
            one.kill()
        proxy.refuses = lambda method, path: False
        if restarts:
            one.start()
        eventually("key is gone", lambda: admin.get(SECRET) is None, 60)
        eventually("nothing is held", lambda: not _held(admin))


def _held(admin: Admin) -> list[str]:
    pods = admin.pods()
    return [p["metadata"]["name"] for p in pods if EVIDENCE in p["metadata"].get("finalizers", ())]
