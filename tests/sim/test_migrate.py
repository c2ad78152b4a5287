"""`odh migrate` and an API server: what it would take, and how far its jobs are."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mpi_trainer.cli.app import odh
from mpi_trainer.cli.main import USAGE
from mpi_trainer.kube.resources import MPIJOBS, TRAINING_RUNTIMES
from tests.sim.faults import Fault
from tests.sim.server import Server
from tests.unit.migrate.cases import base
from tests.unit.migrate.test_legacy import V1


def ran(folder: Path, *words: str, faults: tuple[Fault, ...] = ()) -> tuple[Result, Server]:
    """`odh` with a kubeconfig of a server that has one MPIJob, and the runtime of another."""

    async def play() -> tuple[Result, Server]:
        async with asyncio.timeout(60), Server(faults) as server:
            path = kubeconfig(folder, server.config.server)
            job = base()
            job["metadata"] |= {"namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"}
            server.put(MPIJOBS, job)
            runtime = {"kind": "TrainingRuntime", "metadata": {"name": "there", "namespace": "ns"}}
            server.put(
                TRAINING_RUNTIMES, {"apiVersion": "trainer.kubeflow.org/v1alpha1", **runtime}
            )
            command = ["--kubeconfig", str(path), "migrate", *words]
            runner = CliRunner()
            ended = await asyncio.to_thread(
                runner.invoke, odh, command, catch_exceptions=False, standalone_mode=False
            )
            return ended, server

    return asyncio.run(play())


def kubeconfig(folder: Path, address: str) -> Path:
    path = folder / f"config-{address.rpartition(':')[2]}"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "k", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "v1.yaml"
    path.write_text(yaml.safe_dump({**V1, "metadata": {"name": "mnist"}}))
    return path


def test_the_server_is_asked_by_a_dry_run_and_nothing_is_made(old: Path) -> None:
    """MIG-1."""
    ended, server = ran(old.parent, "-f", str(old), "--check")
    assert ended.return_value == 0, ended.stderr
    assert "the cluster would take it" in ended.stderr
    (asked,) = server.sent("POST")
    assert asked.query["dryRun"] == "All"


def test_what_the_server_would_refuse_is_not_written(old: Path) -> None:
    """MIG-1."""
    no = Fault("answer", method="POST", code=422, reason="Invalid")
    ended, _ = ran(old.parent, "-f", str(old), "--check", faults=(no,))
    assert ended.return_value == USAGE
    assert ended.stdout == ""
    assert "the cluster would refuse it" in ended.stderr


def test_a_trainjob_is_asked_about_only_where_its_runtime_is(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    for name, asked in (("there", 1), ("train", 0)):
        job = base()
        job["metadata"]["name"] = name
        path.write_text(yaml.safe_dump(job))
        ended, server = ran(tmp_path, "-f", str(path), "--check")
        assert ended.return_value == 0, ended.stderr
        assert len(server.sent("POST")) == asked


def test_jobs_of_a_cluster_are_counted_with_what_they_would_take(tmp_path: Path) -> None:
    """MIG-4."""
    ended, _ = ran(tmp_path, "report", "-o", "json")
    found = json.loads(ended.stdout)
    assert found["byApi"] == {"MPIJob kubeflow.org/v2beta1": 1}
    assert found["byEffort"] == {"some": 1}
    ended, _ = ran(tmp_path, "report", "-A")
    assert "train" in ended.stdout
    assert "EFFORT" in ended.stdout
