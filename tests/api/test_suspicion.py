"""An MPIJob whose ranks seem stuck is marked by the controller, and loses the mark (OBS-2).

The kubelet is simulated, so the launcher's readiness and its log are the test's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.annotations import bound
from tests.api.admin import Admin
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.log_proxy import STUCK, STUCK_TEXT, LogProxy
from tests.api.odh import Odh
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "kubelet", "served"]

SECONDS = 2


@pytest.fixture
def proxy(admin: Admin) -> Iterator[LogProxy]:
    with LogProxy(admin.spec) as one:
        one.says = lambda pod: STUCK
        yield one


def message(admin: Admin) -> str:
    return str(admin.conditions()["Running"]["message"])


def told(admin: Admin) -> list[tuple[str, str]]:
    wanted = ("NoProgress", "ProgressResumed")
    return [(kind, reason) for kind, reason, _ in admin.events() if reason in wanted]


def test_a_job_that_seems_stuck_is_marked_once_and_loses_the_mark(
    admin: Admin, kubelet: Kubelet, proxy: LogProxy, tmp_path: Path
) -> None:
    wire = job(2)
    wire["metadata"]["annotations"] = {bound("suspect"): str(SECONDS)}
    with Controller.alone(proxy.kubeconfig(tmp_path), admin.namespace) as one:
        submit(admin, wire)
        before = until(admin, "Running")
        (launcher,) = admin.pods("launcher")
        probe = launcher["spec"]["containers"][0]["readinessProbe"]
        assert probe["exec"]["command"][-1] == "test ! -e /run/mpi-agent/quiet"
        time.sleep(SECONDS + 1)  # nothing may come of it
        assert not proxy.asked, "no log is read while nothing is wrong"
        kubelet.unready = is_launcher
        eventually("marked", lambda: f"{STUCK_TEXT}." in message(admin))
        assert admin.holds("Running")
        now = admin.conditions()["Running"]
        assert now["lastTransitionTime"] == before["lastTransitionTime"]
        eventually("told", lambda: told(admin) == [("Warning", "NoProgress")])
        found = Odh(admin.spec.kubeconfig, admin.namespace).json("mpijob", "explain", "pi")
        assert [f["confidence"] for f in found["findings"]] == ["suspicion"]
        assert STUCK_TEXT in found["findings"][0]["title"]
        assert len(proxy.asked) == 1
        one.kill()
        one.start()  # reads it again, and tells nothing twice
        eventually("read again", lambda: len(proxy.asked) == 2)
        kubelet.unready = lambda pod: False
        eventually("the mark is gone", lambda: message(admin) == before["message"])
        twice = [("Warning", "NoProgress"), ("Normal", "ProgressResumed")]
        eventually("told", lambda: told(admin) == twice)
        (same,) = admin.pods("launcher")
        assert same["metadata"]["uid"] == launcher["metadata"]["uid"]
        kubelet.exit(same)
        until(admin, "Succeeded")
