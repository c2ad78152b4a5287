"""`odh runtime test` and `--check-first` with real MPI: what works, what does not, what is left."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openshift_ai_sdk.training import MPIJob, TrainJobClient, connect
from tests.local.cli import ODH, Cli, cli
from tests.local.odh import until

ALL = ["host names", "SSH", "MPI versions", "start of ranks", "allreduce", "latency", "bandwidth"]
RUNTIME = Path(__file__).parents[2] / "src/mpi_trainer/local/runtimes/mpi-openmpi-cpu.yaml"


@pytest.fixture(scope="module")
def odh() -> Iterator[Cli]:
    with cli() as program:
        yield program


def manifest(folder: Path, command: list[str], **container: Any) -> str:
    def role(replicas: int, **fields: Any) -> dict[str, Any]:
        main = {"name": "main", "image": "local", **fields}
        return {"replicas": replicas, "template": {"spec": {"containers": [main]}}}

    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "wide"},
        "spec": {
            "slotsPerWorker": 4,
            "mpiReplicaSpecs": {
                "Launcher": role(1, command=command, **container),
                "Worker": role(16, **container),
            },
        },
    }
    path = folder / "wide.json"
    path.write_text(json.dumps(job))
    return str(path)


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["outcome"] for step in report["steps"]}


def nothing_is_left(odh: Cli) -> bool:
    return not odh.json("list", "-A")["items"]


def test_a_runtime_is_tested_by_its_name_and_nothing_is_left(odh: Cli) -> None:
    report = odh.json("runtime", "test", "mpi-openmpi-cpu")
    assert outcomes(report) == dict.fromkeys(ALL, "ok")
    assert report["passed"] is True
    assert 0 < report["latency"] < 1
    assert report["bandwidth"] > 1e6
    assert nothing_is_left(odh)


def test_a_large_job_of_a_file_is_tested_small_with_its_own_mpi(odh: Cli) -> None:
    path = manifest(odh.folder, ["mpirun", "-n", "64", "x"])
    report = odh.json("runtime", "test", path, "--mpi", "mpich")
    assert report["passed"] is True
    assert "MPICH" in next(s["text"] for s in report["steps"] if s["name"] == "MPI versions")


def test_without_mpi4py_it_says_what_was_not_measured(odh: Cli) -> None:
    (odh.folder / "empty").mkdir()
    (odh.folder / "empty/mpi4py.py").write_text("raise ImportError('no mpi4py here')")
    env = [{"name": "PYTHONPATH", "value": str(odh.folder / "empty")}]
    path = manifest(odh.folder, ["mpirun", "-n", "64", "x"], env=env)
    page = odh("runtime", "test", path).stdout
    assert "ok         start of ranks  one rank each on" in page
    assert "not tried  latency         the image has no Python with mpi4py" in page
    assert page.endswith("MPIJob wide works\n")


def test_a_job_that_fails_is_explained_with_exit_code_1(odh: Cli) -> None:
    path = manifest(odh.folder, ["/no/such/mpirun", "-n", "64", "x"])
    page = odh("runtime", "test", path, code=1).stdout
    assert "has no mpirun on its PATH" in page
    assert "ProgramNotFound" in page
    assert "hint: " in page
    assert nothing_is_left(odh)


def test_a_job_is_not_created_where_its_check_fails(odh: Cli) -> None:
    path = manifest(odh.folder, ["/no/such/mpirun", "-n", "64", "x"])
    said = odh("mpijob", "create", "-f", path, "--check-first", code=1)
    assert "error: job wide was not created: the smoke run of MPIJob wide failed" in said.stderr
    assert said.stdout == ""
    assert nothing_is_left(odh)


def test_a_trainjob_is_not_created_where_its_check_fails(odh: Cli) -> None:
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "many"},
        "spec": {
            "runtimeRef": {"name": "mpi-openmpi-cpu"},
            "trainer": {"numNodes": 8, "command": ["/no/such/mpirun", "-n", "8", "x"]},
        },
    }
    (odh.folder / "many.json").write_text(json.dumps(job))
    said = odh("trainjob", "create", "-f", "many.json", "--check-first", code=1)
    assert "error: job many was not created: the smoke run of TrainJob many failed" in said.stderr
    assert nothing_is_left(odh)


def test_a_job_is_created_after_a_check_that_went_well(odh: Cli) -> None:
    said = odh("mpijob", "create", "good", "-w", "2", "--check-first", "--", "hostname")
    assert "MPIJob good works" in said.stderr
    assert "good created" in said.stdout
    odh("mpijob", "delete", "good")


def test_ctrl_c_removes_the_job(odh: Cli) -> None:
    words = [str(ODH), "runtime", "test", "mpi-openmpi-cpu"]
    with subprocess.Popen(words, env=odh.env, cwd=odh.folder, stdout=-1, stderr=-1) as running:
        until("a job", lambda: not nothing_is_left(odh))
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert running.returncode == 130
    assert nothing_is_left(odh)


def test_a_time_out_names_the_step_and_removes_the_job(odh: Cli) -> None:
    path = manifest(odh.folder, ["mpirun", "-n", "2", "x"])
    report = json.loads(
        odh("runtime", "test", path, "--timeout", "1s", "-o", "json", code=1).stdout
    )
    assert "it has not ended within 1 s" in report["problem"]
    assert nothing_is_left(odh)


def test_a_runtime_of_a_file_is_tested_and_read(odh: Cli) -> None:
    text = RUNTIME.read_text().replace("name: mpi-openmpi-cpu", "name: mine")
    (odh.folder / "mine.yaml").write_text(text)
    assert odh("runtime", "test", "mine.yaml").stdout.endswith(
        "ClusterTrainingRuntime mine works\n"
    )
    page = odh("runtime", "test", "mine.yaml", "--lint-only").stdout
    assert "note: no smoke run: as asked for" in page


def test_what_is_no_runtime_and_no_file_is_wrong_use(odh: Cli) -> None:
    assert "there is no runtime mpi-openmp" in odh("runtime", "test", "mpi-openmp", code=2).stderr
    assert "cannot read" in odh("runtime", "test", "nothing.yaml", code=2).stderr


def test_the_sdk_checks_jobs_and_runtimes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    backend = connect(local=True)
    job = MPIJob("train", workers=8, command=["hostname"], backend=backend)
    report = job.check(timeout=60)
    assert report.passed, report
    assert report.latency is not None
    client = TrainJobClient(backend=backend)
    read = client.test_runtime("torch-distributed")
    assert (read.passed, read.steps) == (True, ())
    assert list(client.list()) == []
