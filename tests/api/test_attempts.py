"""What a job keeps of its attempts, by the real controller on a real API server (W-7, W-9).

Where there is no node there is no log: a proxy answers for the kubelet. All else is real; on real
nodes it is tests/e2e/full/test_last_words.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.annotations import ATTEMPTS, LOG_TAIL
from mpi_trainer.decide import history
from mpi_trainer.decide.history import History
from tests.api.admin import JOBS, Admin
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.log_proxy import LogProxy
from tests.api.odh import Odh
from tests.api.running import Controller, job
from tests.cluster import eventually

__all__ = ["admin", "kubelet", "served"]


@pytest.fixture
def proxy(admin: Admin) -> Iterator[LogProxy]:
    with LogProxy(admin.spec) as one:
        yield one


@pytest.fixture
def controller(admin: Admin, proxy: LogProxy, tmp_path: Path) -> Iterator[Controller]:
    with Controller.alone(proxy.kubeconfig(tmp_path), admin.namespace) as one:
        yield one


def kept(admin: Admin) -> History:
    text = admin.job("pi")["metadata"].get("annotations", {}).get(ATTEMPTS, "")
    return history.read({ATTEMPTS: text})


def fails(admin: Admin, kubelet: Kubelet, code: int = 3) -> None:
    (launcher,) = (p for p in admin.pods("launcher") if p["status"].get("phase") == "Running")
    kubelet.exit(launcher, code)


def test_every_attempt_leaves_its_last_words_and_no_extra_write(
    admin: Admin, kubelet: Kubelet, controller: Controller, proxy: LogProxy
) -> None:
    submit(admin, job(1, backoffLimit=1))
    until(admin, "Running")
    proxy.writes.clear()
    fails(admin, kubelet)
    until(admin, "Restarting")
    (first,) = kept(admin)
    assert first.attempt == 1 and first.reason == "LauncherPodFailed"
    assert "exit code 3" in first.message
    assert first.began and first.ended and first.began <= first.ended
    (words,) = first.words
    assert words.text == "epoch 3\ntoken=[redacted]\nValueError: no such column"
    records = [w for w in proxy.writes if w.method == "PATCH" and w.path.endswith("/mpijobs/pi")]
    assert len(records) == 1, "record and words are one write"
    assert all(int(asked["limitBytes"]) <= 64 * 1024 for asked in proxy.asked)
    until(admin, "Running", seconds=90)
    fails(admin, kubelet, 4)
    until(admin, "Failed", seconds=90)
    assert [one.attempt for one in kept(admin)] == [1, 2]
    # The pods of the first attempt are gone, and what they said is not.
    odh = Odh(admin.spec.kubeconfig, admin.namespace)
    said = odh("mpijob", "logs", "pi", "--attempt", "1")
    assert "ValueError: no such column" in said.stdout
    assert "its pods are gone; its last lines were kept" in said.stderr
    page = odh("mpijob", "describe", "pi").stdout
    assert "Last words of attempt 1" in page and "Last words of attempt 2" in page


def test_job_that_succeeds_keeps_no_words(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(1, backoffLimit=1))
    until(admin, "Running")
    fails(admin, kubelet)
    until(admin, "Restarting")
    until(admin, "Running", seconds=90)
    fails(admin, kubelet, 0)
    until(admin, "Succeeded")
    (first,) = kept(admin)
    assert first.words == () and first.reason == "LauncherPodFailed"
    assert '"words"' not in admin.job("pi")["metadata"]["annotations"][ATTEMPTS]


def test_launcher_at_its_deadline_is_heard_before_it_is_stopped(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(1, activeDeadlineSeconds=15, cleanPodPolicy="All"))
    until(admin, "Running")
    failed = until(admin, "Failed")
    assert failed["reason"] == "DeadlineExceeded" and "log" not in failed["message"]
    (first,) = kept(admin)
    assert first.reason == "DeadlineExceeded" and "no such column" in first.words[0].text


@pytest.mark.parametrize("role", ["launcher", "worker"])
def test_deleted_pod_does_not_take_the_last_words_along(
    admin: Admin, kubelet: Kubelet, controller: Controller, role: str
) -> None:
    submit(admin, job(1, backoffLimit=0))
    until(admin, "Running")
    (pod,) = admin.pods(role)
    admin.delete(f"api/v1/pods/{pod['metadata']['name']}")
    failed = until(admin, "Failed")
    assert "deleted" in failed["message"]
    (first,) = kept(admin)
    assert "no such column" in first.words[0].text


def test_node_that_does_not_answer_holds_up_no_end(
    admin: Admin, kubelet: Kubelet, controller: Controller, proxy: LogProxy
) -> None:
    proxy.says = lambda pod: None
    submit(admin, job(1, backoffLimit=0))
    until(admin, "Running")
    began = time.monotonic()
    fails(admin, kubelet)
    until(admin, "Failed", seconds=30)
    (first,) = kept(admin)
    assert first.words == () and "fake-node" in first.silence
    assert len(proxy.asked) == 1, "a node that is silent is asked once"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("whose", ["administrator", "job"])
def test_words_can_be_switched_off(
    admin: Admin, kubelet: Kubelet, proxy: LogProxy, tmp_path: Path, whose: str
) -> None:
    flags = ("--log-tail=off",) if whose == "administrator" else ()
    with Controller.alone(proxy.kubeconfig(tmp_path), admin.namespace, *flags):
        made = job(1, backoffLimit=0)
        if whose == "job":
            made["metadata"]["annotations"] = {LOG_TAIL: "off"}
        submit(admin, made)
        until(admin, "Running")
        fails(admin, kubelet)
        failed = until(admin, "Failed")
        assert "no such column" not in failed["message"]
        (first,) = kept(admin)
        assert first.words == () and first.silence == history.SWITCHED_OFF
        assert proxy.asked == []


def test_suspension_keeps_what_was_printed_before(
    admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    submit(admin, job(1))
    until(admin, "Running")
    admin.patch(f"{JOBS}/mpijobs/pi", {"spec": {"runPolicy": {"suspend": True}}})
    until(admin, "Suspended")
    eventually("told", lambda: len(kept(admin)) == 1)
    (first,) = kept(admin)
    assert first.reason == history.SUSPENDED and first.words
    assert json.loads(admin.job("pi")["metadata"]["annotations"][ATTEMPTS])
