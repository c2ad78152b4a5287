"""Tests of runtimes and job files over HTTP, with real mpirun."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.callers import Loopback
from tests.local.odh import MARK, until
from tests.rest import Rest, served

pytestmark = pytest.mark.timeout(240)
SPACE = "/api/v1/namespaces/default"
NAMES = ["host names", "SSH", "MPI versions", "start of ranks", "allreduce", "latency", "bandwidth"]


@pytest.fixture(scope="module")
def loopback() -> Loopback:
    return Loopback(LocalBackend(), "odh-session")


@pytest.fixture(scope="module")
def port(loopback: Loopback) -> Iterator[int]:
    with served(loopback) as number:
        yield number


@pytest.fixture
def server(
    port: int, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rest]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(MARK, tmp_path.name)
    yield Rest(port, loopback.token)
    for folder in store.folders():
        store.remove(folder)


def manifest(name: str, **more: Any) -> dict[str, Any]:
    made = to_wire(NewJob(name, ("mpirun", "python", "x.py"), workers=4, **more).mpijob())
    made["metadata"] = {"name": name}
    return made


def jobs(server: Rest) -> list[str]:
    return [one["name"] for one in server.get(f"{SPACE}/jobs")["items"]]


def test_a_runtime_and_a_job_are_tested_and_nothing_is_left(server: Rest) -> None:
    asked = (
        ("/runtimes/mpi-openmpi-cpu/test?timeout=120", None),
        ("/plan/test", manifest("wide")),
    )
    for path, body in asked:
        reply = server.ask("POST", f"{SPACE}{path}", body)
        assert reply.status == 200, reply
        report = reply.data
        assert report["passed"], report["text"]
        assert {one["name"]: one["passed"] for one in report["steps"]} == dict.fromkeys(
            ["reading", *NAMES], True
        )
        assert report["latencySeconds"] > 0 and report["bytesPerSecond"] > 0
        assert "works" in report["summary"] and "SSH" in report["text"]
        assert jobs(server) == []


def test_what_is_wrong_is_told_step_by_step_with_a_remedy(server: Rest) -> None:
    broken = manifest("broken", env=(("LD_PRELOAD", "/none.so"), ("OMPI_MCA_pml", "none")))
    report = server.ask("POST", f"{SPACE}/plan/test", broken).data
    failed = [one for one in report["steps"] if one["passed"] is False]
    assert not report["passed"] and failed and "failed" in report["text"], report
    read = manifest("read") | {"spec": manifest("x")["spec"] | {"slotsPerWorker": -1}}
    assert server.ask("POST", f"{SPACE}/plan/test", read).status == 422
    only = server.ask("POST", f"{SPACE}/plan/test?smokeRun=false", manifest("read")).data
    assert only["passed"] and [one["name"] for one in only["steps"]] == ["reading"]
    none = server.ask("POST", f"{SPACE}/runtimes/none/test")
    assert none.status == 404 and "mpi-openmpi-cpu" in none.data["hint"]
    for query in ("timeout=5", "timeout=600"):
        assert server.ask("POST", f"{SPACE}/plan/test?{query}", manifest("x")).status == 400
    elsewhere = manifest("x") | {"metadata": {"name": "x", "namespace": "other"}}
    assert server.ask("POST", f"{SPACE}/plan/test", elsewhere).status == 422
    assert jobs(server) == []


def test_one_test_at_a_time_ends_where_nobody_waits_for_it(server: Rest) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as impatient:
        impatient.sendall(
            f"POST {SPACE}/runtimes/mpi-openmpi-cpu/test HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {server.token}\r\nContent-Length: 0\r\n\r\n".encode()
        )
        until("the test runs", lambda: jobs(server))
        second = server.ask("POST", f"{SPACE}/plan/test", manifest("second"))
        assert second.status == 429 and "1 tests under way" in second.data["detail"]
        assert second.headers["Retry-After"] == "5"
    until("the job of the test is gone", lambda: not jobs(server))
    third = f"{SPACE}/plan/test?smokeRun=false"
    until("another may run", lambda: server.ask("POST", third, manifest("third")).status == 200)
