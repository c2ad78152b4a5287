"""What people asked of `odh` after using it on a cluster, against a real API server.

The kubelet is played, and a proxy answers for its logs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.api.admin import JOBS, Admin
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import admin, kubelet, served, submit
from tests.api.log_proxy import LogProxy
from tests.api.odh import ODH, Odh
from tests.api.running import Controller, job
from tests.cluster import Kubectl, eventually

__all__ = ["admin", "kubelet", "served"]

RUN = ("--image", "registry.example.com/train:1", "-w", "2", "--", "python", "train.py")


@pytest.fixture
def proxy(admin: Admin) -> Iterator[LogProxy]:
    with LogProxy(admin.spec) as one:
        yield one


@pytest.fixture
def controller(admin: Admin, proxy: LogProxy, tmp_path: Path) -> Iterator[Controller]:
    with Controller.alone(proxy.kubeconfig(tmp_path), admin.namespace) as one:
        yield one


@pytest.fixture
def odh(admin: Admin, proxy: LogProxy, tmp_path: Path) -> Odh:
    return Odh(proxy.kubeconfig(tmp_path), admin.namespace)


def test_logs_of_all_pods_by_name_level_and_attempt(
    odh: Odh, admin: Admin, kubelet: Kubelet, controller: Controller, proxy: LogProxy
) -> None:
    """AC-9: the launcher first, each line with its pod."""
    stamp = "2026-11-18T06:00:0{}.000000000Z"
    proxy.says = lambda pod: "".join(
        f"{stamp.format(n)} {text}\n" for n, text in enumerate((f"INFO {pod}", "ERROR boom"))
    )
    odh("mpijob", "create", "train", *RUN)
    eventually("all pods run", lambda: admin.holds("Running", "train"))
    lines = odh("logs", "train", "--all-pods").stdout.splitlines()
    launcher = next(pod["metadata"]["name"] for pod in admin.pods("launcher"))
    workers = ("train-worker-0", "train-worker-1")
    pods = (launcher, *workers)
    assert [line.split()[0] for line in lines] == [f"[pod/{p}]" for p in pods for _ in range(2)]
    assert odh("logs", "train", "--pod", "train-worker-1", "--level", "error").stdout == (
        "ERROR boom\n"
    )
    early = odh("logs", "train", "--until", "2026-11-18T06:00:00Z").stdout
    assert early == f"INFO {launcher}\n"
    assert odh("logs", "train", "--attempt", "9", code=1).stderr == (
        "error: job train has no attempt 9, but only attempt 1\n"
    )
    odh("rm", "train")


def test_a_list_shows_how_far_running_jobs_are(
    odh: Odh, admin: Admin, kubelet: Kubelet, controller: Controller, proxy: LogProxy
) -> None:
    """W-9: from the last lines of their launchers, bounded in number, size and time."""
    proxy.says = lambda pod: "2026-11-18T06:00:00.000000000Z [0] epoch 3/12 loss 0.5\n"
    odh("mpijob", "create", "train", "--label", "team=a", *RUN)
    odh("mpijob", "create", "idle", "--suspended", *RUN)
    eventually("it runs", lambda: admin.holds("Running", "train"))
    proxy.asked.clear()
    rows = {line.split()[0]: line for line in odh("mpijob", "list").stdout.splitlines()}
    assert "25% epoch 3/12" in rows["train"]
    assert rows["idle"].split()[3] == "-"
    (asked,) = proxy.asked
    assert int(asked["limitBytes"]) <= 64 * 1024 and int(asked["tailLines"]) <= 200
    assert "25% epoch 3/12" in odh("list").stdout
    assert "25% epoch 3/12" in odh("get", "train").stdout
    (item,) = odh.json("mpijob", "list", "-l", "team=a")["items"]
    assert item["progress"]["fraction"] == 0.25 and item["metadata"]["name"] == "train"
    proxy.asked.clear()
    odh("mpijob", "list", "-o", "name")
    assert not proxy.asked
    proxy.says = lambda pod: None  # a node that does not answer
    began = time.monotonic()
    assert "train" in odh("mpijob", "list").stdout
    assert time.monotonic() - began < 10
    odh("rm", "train", "idle")


def test_lists_are_selected_sorted_and_cut_into_columns(odh: Odh, admin: Admin) -> None:
    for name, team in (("b", "x"), ("a", "x"), ("c", "y")):
        odh("mpijob", "create", name, "--suspended", "--label", f"team={team}", *RUN)
    for words in (("mpijob", "list"), ("list",), ("get",)):
        names = odh(*words, "-l", "team in (x)", "--sort-by", "name", "-o", "name").stdout
        assert [line.rpartition("/")[2] for line in names.split()] == ["a", "b"]
    columns = "-o", "custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team,S:.state"
    table = odh("mpijob", "list", "-l", "team!=x", *columns).stdout.splitlines()
    assert [line.split() for line in table] == [["NAME", "TEAM", "S"], ["c", "y", "Created"]]
    by_path = odh("list", "--sort-by", ".metadata.labels.team", "-o", "name").stdout.split()
    assert by_path[-1].endswith("/c")
    assert odh("mpijob", "get", "a", *columns, "--no-headers").stdout.split()[:2] == ["a", "x"]
    odh("rm", "a", "b", "c")


STORE = """
from datetime import UTC, datetime
from openshift_ai_sdk.training import LogLine

class Store:
    async def lines(self, job, query):
        for rank in (0, 1):
            yield LogLine(datetime.now(UTC), "launcher-x", "stdout", rank, f"kept {rank}")
"""


def test_lines_of_pods_that_are_gone_come_from_the_log_store(
    odh: Odh, admin: Admin, tmp_path: Path
) -> None:
    """AC-9: a package plugs it in by an entry point; the job's own filters apply."""
    (tmp_path / "kept_logs.py").write_text(STORE)
    info = tmp_path / "kept_logs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kept-logs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mpi_trainer.log_stores]\nkept = kept_logs:Store\n")
    env = {"PYTHONPATH": str(tmp_path), "MPI_TRAINER_LOG_STORE": "kept"}
    plugged = Odh(odh.kubeconfig, odh.namespace, env, ODH)
    odh("mpijob", "create", "train", *RUN)
    assert plugged("logs", "train").stdout == "[0] kept 0\n[1] kept 1\n"
    assert plugged("logs", "train", "--rank", "1").stdout == "[1] kept 1\n"
    unknown = Odh(odh.kubeconfig, odh.namespace, {**env, "MPI_TRAINER_LOG_STORE": "loki"}, ODH)
    refused = unknown("logs", "train", code=2).stderr
    assert "MPI_TRAINER_LOG_STORE is loki" in refused and "installed are: kept" in refused
    odh("rm", "train")


def test_what_a_job_names_and_the_cluster_does_not_have_is_warned_about(
    odh: Odh, admin: Admin
) -> None:
    """W-9: PersistentVolumeClaim and ConfigMap; one that is there is not named."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteMany"],
             "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    admin.create("api/v1/persistentvolumeclaims", claim)
    there = odh("mpijob", "create", "one", "--pvc", "data:/data", *RUN).stderr
    assert "warning" not in there
    said = odh("mpijob", "create", "two", "--pvc", "dta:/data", *RUN).stderr
    assert (
        f"warning: PersistentVolumeClaim dta is not found in namespace {admin.namespace}: "
        "the pods wait until it is there" in said
    )
    manifest = job(1, "three")
    pod = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    pod["volumes"] = [{"name": "s", "configMap": {"name": "settings"}}]
    said = odh("mpijob", "create", "-f", "-", data=json.dumps(manifest)).stderr
    assert said.count("ConfigMap settings is not found") == 1
    odh("mpijob", "delete", "one", "two", "three")


def test_options_reach_the_cluster(odh: Odh, admin: Admin) -> None:
    words = ("--queue", "team", "--label", "a=b", "--time-limit", "2h", "--priority-class", "high")
    odh("mpijob", "create", "train", *words, "--suspended", *RUN)
    stored = admin.job("train")
    assert stored["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    assert stored["spec"]["runPolicy"]["activeDeadlineSeconds"] == 7200
    worker = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert worker["priorityClassName"] == "high"
    said = odh("resume", "train").stderr
    assert "train is in the queue team: Kueue decides when it runs" in said
    odh("rm", "train")


def test_a_list_of_kubectl_is_created_elsewhere(odh: Odh, admin: Admin) -> None:
    """`kubectl get mpijobs -o yaml | odh mpijob create -f -`."""
    for name in ("one", "two"):
        odh("mpijob", "create", name, "--suspended", *RUN)
    text = Kubectl(admin.spec, admin.namespace)("get", "mpijobs", "-o", "yaml")
    assert yaml.safe_load(text)["kind"] == "List"
    assert "valid (one, two)" in odh("validate", "-f", "-", data=text).stdout
    before = {name: admin.job(name)["metadata"]["uid"] for name in ("one", "two")}
    odh("delete", "--all", "--yes")
    odh("mpijob", "create", "-f", "-", data=text)
    after = {name: admin.job(name)["metadata"]["uid"] for name in ("one", "two")}
    assert not set(before.values()) & set(after.values())
    odh("delete", "--all", "--yes")


def test_describe_says_when_the_controller_last_looked(
    odh: Odh, admin: Admin, kubelet: Kubelet, controller: Controller
) -> None:
    odh("mpijob", "create", "train", *RUN)
    eventually("it runs", lambda: admin.holds("Running", "train"))
    written = admin.job("train")["status"]["lastReconcileTime"]
    assert f"Reconciled: {written}" in " ".join(odh("describe", "train").stdout.split())
    kubelet.finish = lambda pod: 0 if is_launcher(pod) else None
    odh("wait", "train", "--timeout", "60s")
    odh("rm", "train")


def test_cp_from_an_ended_job_names_the_claim_or_says_that_it_is_gone(
    odh: Odh, admin: Admin
) -> None:
    odh("mpijob", "create", "train", "--pvc", "data:/data", *RUN)
    own = odh("mpijob", "cp", "train:/model.pt", "x", code=2).stderr
    assert "no launcher of job" in own and "gone with it" in own and "--pvc NAME:PATH" in own
    kept = odh("mpijob", "cp", "train:/data/model.pt", "x", code=2).stderr
    assert "It is on the claim data" in kept
    assert "--image registry.example.com/train:1 --pvc data:/data --as-is -- sleep 1h" in kept
    odh("rm", "train")


def test_ended_jobs_are_reached_by_short_forms(odh: Odh, admin: Admin) -> None:
    odh("mpijob", "create", "train", *RUN)
    assert odh("get", "train").stdout.split()[6] == "train"
    assert odh("ls").stdout.splitlines()[1].split()[:2] == ["MPIJob", "train"]
    assert odh("stop", "train").stdout == "train suspended\n"
    assert admin.job("train")["spec"]["runPolicy"]["suspend"] is True
    assert odh("rm", "train").stdout == "train deleted\n"
    assert admin.get(f"{JOBS}/mpijobs/train") is None


def test_why_a_job_failed_outlives_its_pods_and_logs(
    odh: Odh, admin: Admin, kubelet: Kubelet, controller: Controller, proxy: LogProxy
) -> None:
    """SC-006: found once, by the controller; `explain`, `describe`, condition and event agree."""
    proxy.says = lambda pod: (
        "Traceback (most recent call last):\nFileNotFoundError: [Errno 2] No such file or "
        "directory: '/data/part-1.csv'\n"
    )
    submit(admin, job(1, backoffLimit=0))
    eventually("it runs", lambda: admin.holds("Running"))
    (launcher,) = admin.pods("launcher")
    ended = (
        "mpi-agent 1\nlevel full\nended Command 1\ncause RankFailed 0 pi-worker-0\n"
        "bad 0 pi-worker-0 status=1 pid=7 oom=0\nhost pi-worker-0 0 peak=- oom=-\n"
    )
    kubelet.exit(launcher, 1, message=ended)
    eventually("it failed", lambda: admin.holds("Failed"))
    for pod in admin.pods():
        admin.delete(f"api/v1/pods/{pod['metadata']['name']}")
    proxy.says = lambda pod: ""
    (first, *_) = json.loads(odh("explain", "pi", "-o", "json").stdout)["findings"]
    assert (first["cause"], first["ranks"]) == ("FileMissing", [0])
    assert first["hosts"] == ["pi-worker-0"] and "part-1.csv" in first["line"]
    page = odh("mpijob", "describe", "pi").stdout
    assert page.startswith("FileMissing: ") and "hint: " in page
    failed = next(c for c in admin.job("pi")["status"]["conditions"] if c["type"] == "Failed")
    assert "FileMissing: " in failed["message"]
    eventually("events", lambda: failed["message"] in odh("mpijob", "describe", "pi").stdout)
