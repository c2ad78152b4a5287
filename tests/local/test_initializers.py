"""Data of a TrainJob is there before its nodes start, on this machine too (CTL-9)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dataserver import DataServer, serving
from tests.local.cli import Cli, cli
from tests.local.odh import run

TOKEN = "only-for-this-server"
READ = "import os; print('read', open('/workspace/dataset/train.bin').read(), flush=True)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DataServer]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served/train.bin").write_text("fetched")
    with serving(tmp_path / "served") as data:
        data.token = TOKEN
        yield data


def runtime() -> dict[str, Any]:
    """Nodes that see the claim into which the initializer fetches."""
    mount = [{"name": "initializer", "mountPath": "/workspace"}]
    volumes = [{"name": "initializer", "persistentVolumeClaim": {"claimName": "data"}}]

    def replicated(name: str, step: str, **more: object) -> dict[str, object]:
        container = {"name": name, "image": "x", "volumeMounts": mount}
        pod = {"spec": {"containers": [container], "volumes": volumes}}
        labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step}
        template = {"metadata": {"labels": labels}, "spec": {"backoffLimit": 0, "template": pod}}
        return {"name": name, "template": template, **more}

    after = [{"name": "dataset-initializer", "status": "Complete"}]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "with-data"},
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        replicated("dataset-initializer", "dataset-initializer"),
                        replicated("node", "trainer", dependsOn=after),
                    ]
                }
            },
        },
    }


def written(folder: Path, uri: str, command: str = READ) -> str:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "credentials"},
        "stringData": {"ACCESS_TOKEN": TOKEN},
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {
            "runtimeRef": {"name": "with-data", "kind": "TrainingRuntime"},
            "initializer": {
                "dataset": {"storageUri": uri, "secretRef": {"name": "credentials"}},
            },
            "trainer": {"command": ["python", "-c", command]},
        },
    }
    path = folder / "trainjob.yaml"
    path.write_text(yaml.safe_dump_all([secret, runtime(), job]))
    return str(path)


def test_data_is_fetched_before_the_nodes_start(server: DataServer, tmp_path: Path) -> None:
    file = written(tmp_path, f"{server.url}/train.bin")
    ended = run("run", "-f", file, "--claim", f"data={tmp_path / 'claim'}")
    assert ended.returncode == 0, ended.stderr
    assert "read fetched" in ended.stdout
    assert (tmp_path / "claim/dataset/train.bin").read_text() == "fetched"
    assert TOKEN not in ended.stdout + ended.stderr


def test_data_that_cannot_be_had_ends_the_job_with_what_to_do(
    server: DataServer, tmp_path: Path
) -> None:
    wanted = hashlib.sha256(b"another").hexdigest()
    file = written(tmp_path, f"{server.url}/train.bin#sha256={wanted}")
    ended = run("run", "-f", file, "--claim", f"data={tmp_path / 'claim'}")
    assert ended.returncode != 0
    assert "error: dataset: train.bin has the checksum" in ended.stderr
    assert "hint: What the server has is damaged" in ended.stderr
    assert "read" not in ended.stdout
    assert not (tmp_path / "claim/dataset/train.bin").exists()


@pytest.mark.full
def test_progress_of_a_fetch_is_the_jobs(server: DataServer, tmp_path: Path) -> None:
    """In the list, as that of training is; a job that is deleted meanwhile leaves no process."""
    (server.root / "train.bin").write_bytes(bytes(8 << 20))
    server.rate = 1 << 20
    with cli() as odh:
        file = written(tmp_path, f"{server.url}/train.bin")
        (tmp_path / "runtime.yaml").write_text(yaml.safe_dump(runtime()))
        claim = f"data={tmp_path / 'claim'}"
        given = ("--runtime", str(tmp_path / "runtime.yaml"), "--claim", claim)
        odh("trainjob", "create", "-f", file, *given)
        deadline = time.monotonic() + 60
        while not (found := _progress(odh)):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert 0 < found < 1
        odh("trainjob", "delete", "job", "--yes")
        sent = server.sent
        time.sleep(0.5)
        assert server.sent - sent <= 1 << 20


def _progress(odh: Cli) -> float:
    job = odh.json("trainjob", "describe", "job")
    return float((job.get("progress") or {}).get("fraction") or 0)
