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
    asked = server.sent("POST")
    assert {one.query["dryRun"] for one in asked} == {"All"}
    assert [one.path.rpartition("/")[2] for one in asked] == ["mpijobs", "pods", "pods"]


def test_what_the_server_would_refuse_is_not_written(old: Path) -> None:
    """MIG-1."""
    no = Fault("answer", method="POST", code=422, reason="Invalid")
    ended, _ = ran(old.parent, "-f", str(old), "--check", faults=(no,))
    assert ended.return_value == USAGE
    assert ended.stdout == ""
    assert "the cluster would refuse it" in ended.stderr


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("spec.runtimeRef.name: Invalid value", "apply that, and check again"),
        ('pods is forbidden: User "x" cannot create resource "pods"', "you may not create pods"),
        ("exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1", "has no room"),
        ('error looking up service account ns/a: serviceaccount "a" not found', "looking up"),
    ],
)
def test_what_may_come_later_is_a_note_and_no_refusal(
    tmp_path: Path, message: str, said: str
) -> None:
    """MIG-1: the result is written, and whoever reads knows what was not asked."""
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(base()))
    kind = "trainjobs" if "runtimeRef" in message else "pods"
    no = Fault("answer", method="POST", path=kind, code=403, reason="Forbidden", message=message)
    ended, _ = ran(tmp_path, "-f", str(path), "--check", "-o", "json", faults=(no,))
    assert ended.return_value == 0, ended.stderr
    (job,) = json.loads(ended.stdout)["jobs"]
    assert job["check"]["asked"] is False
    assert job["check"]["refusals"] == []
    assert said in str(job["check"]["notes"])


def test_jobs_of_a_cluster_are_counted_with_what_they_would_take(tmp_path: Path) -> None:
    """MIG-4."""
    ended, _ = ran(tmp_path, "report", "-o", "json")
    found = json.loads(ended.stdout)
    assert found["byApi"] == {"MPIJob kubeflow.org/v2beta1": 1}
    assert found["byEffort"] == {"some": 1}
    ended, _ = ran(tmp_path, "report", "-A")
    assert "train" in ended.stdout
    assert "EFFORT" in ended.stdout
