"""What a TrainJob keeps of its attempts, which JobSet makes (W-7, W-9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.annotations import ATTEMPTS, LOG_TAIL
from mpi_trainer.api.kinds.labels import LABEL_JOBSET
from mpi_trainer.decide import history
from mpi_trainer.decide.history import History
from tests.api.admin import Admin, Object
from tests.api.log_proxy import AGENT, STUCK, STUCK_TEXT, LogProxy
from tests.api.odh import Odh
from tests.api.running import Controller
from tests.api.test_trainjob import pod_of
from tests.api.trainjob_lab import (
    SETS,
    TRAIN,
    admin,
    api_server,
    end,
    finding,
    job_set,
    submit,
    train_job,
    until,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server"]

MAIN = {"name": "node", "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}


@pytest.fixture
def proxy(admin: Admin, tmp_path: Path) -> Iterator[LogProxy]:
    with (
        LogProxy(admin.spec) as one,
        Controller.alone(one.kubeconfig(tmp_path), admin.namespace),
    ):
        yield one


def now(admin: Admin, pod: str, phase: str, state: Object) -> None:
    ended = [{**MAIN, "state": state}]
    admin.patch(f"{pod}/status", {"status": {"phase": phase, "containerStatuses": ended}})


def kept(admin: Admin) -> History:
    found = admin.get(f"{TRAIN}/trainjobs/pi") or {}
    return history.read(found["metadata"].get("annotations", {}))


def test_launcher_that_failed_leaves_its_last_words(admin: Admin, proxy: LogProxy) -> None:
    submit(admin, train_job())
    launcher = pod_of(admin, job_set(admin), "launcher")
    now(admin, launcher, "Failed", {"terminated": {"exitCode": 3, "reason": "Error"}})
    eventually("told", lambda: len(kept(admin)) == 1)
    (first,) = kept(admin)
    assert "exit code 3" in first.message and "no such column" in first.words[0].text
    assert "abcdef123456" not in first.words[0].text
    end(admin, "Failed", "FailedJobs")
    failed = until(admin, "Failed")
    assert kept(admin) == (first,)
    assert first.cause == first.findings[0].cause == "ProgramException"
    assert "ProgramException: " in failed["message"]
    admin.delete(launcher, grace=0)
    odh = Odh(admin.spec.kubeconfig, admin.namespace)
    said = odh("trainjob", "logs", "pi", "--attempt", "1")
    assert "ValueError: no such column" in said.stdout
    page = odh("trainjob", "describe", "pi").stdout
    assert page.startswith("ProgramException: ") and "Last words of attempt 1" in page
    assert odh("explain", "pi").stdout.startswith("ProgramException: ")


def test_words_can_be_switched_off(admin: Admin, proxy: LogProxy) -> None:
    """Also those that a program left in the termination message."""
    made = train_job()
    made["metadata"]["annotations"] = {LOG_TAIL: "off"}
    submit(admin, made)
    launcher = pod_of(admin, job_set(admin), "launcher")
    over = {"exitCode": 3, "reason": "Error", "message": "ValueError: no such column"}
    now(admin, launcher, "Failed", {"terminated": over})
    eventually("told", lambda: len(kept(admin)) == 1)
    end(admin, "Failed", "FailedJobs")
    failed = until(admin, "Failed")
    assert "exit code 3" in failed["message"]
    found = admin.get(f"{TRAIN}/trainjobs/pi") or {}
    told = admin.events("TrainJob")
    assert "no such column" not in f"{found} {told}" and proxy.asked == []


def test_launcher_at_the_deadline_is_heard(admin: Admin, proxy: LogProxy) -> None:
    made = train_job()
    made["spec"]["activeDeadlineSeconds"] = 8
    submit(admin, made)
    launcher = pod_of(admin, job_set(admin), "launcher")
    now(admin, launcher, "Running", {"running": {}})
    assert until(admin, "Failed")["reason"] == "DeadlineExceeded"
    (first,) = kept(admin)
    assert first.reason == "DeadlineExceeded" and "no such column" in first.words[0].text


def test_trainjob_that_seems_stuck_is_explained_from_its_log(
    admin: Admin, proxy: LogProxy, tmp_path: Path
) -> None:
    """OBS-2: when somebody asks; the controller reads no log of a job that runs."""
    proxy.says = lambda pod: STUCK
    submit(admin, train_job())
    launcher = pod_of(admin, job_set(admin), "launcher")
    admin.patch(launcher, {"metadata": {"labels": {LABEL_JOBSET: "pi"}}})
    now(admin, launcher, "Running", {"running": {}})
    up = {"succeeded": 0, "ready": 1, "failed": 0, "active": 1, "suspended": 0}
    counts = [{"name": name, **up} for name in ("node", "launcher")]
    admin.patch(f"{SETS}/jobsets/pi/status", {"status": {"replicatedJobsStatus": counts}})
    eventually("it runs", lambda: finding(admin, "phase") == "Running", 30)
    assert proxy.asked == []
    odh = Odh(proxy.kubeconfig(tmp_path), admin.namespace)
    (found,) = odh.json("trainjob", "explain", "pi")["findings"]
    assert found["confidence"] == "suspicion" and STUCK_TEXT in found["title"]
    assert STUCK_TEXT in odh("trainjob", "describe", "pi").stdout
    proxy.says = lambda pod: f"{STUCK}{AGENT} moving seconds=400\n"
    assert odh.json("trainjob", "explain", "pi")["findings"] == []


def test_job_that_completes_keeps_no_words(admin: Admin, proxy: LogProxy) -> None:
    submit(admin, train_job())
    launcher = pod_of(admin, job_set(admin), "launcher")
    now(admin, launcher, "Failed", {"terminated": {"exitCode": 3, "reason": "Error"}})
    eventually("told", lambda: len(kept(admin)) == 1)
    admin.delete(launcher, grace=0)
    end(admin, "Completed", "AllJobsCompleted")
    until(admin, "Complete")
    found = admin.get(f"{TRAIN}/trainjobs/pi") or {}
    assert '"words"' not in found["metadata"]["annotations"][ATTEMPTS]
