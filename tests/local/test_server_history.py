"""What a program printed over time, by the REST API, of a job with real mpirun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.local.jobs import store
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.callers import Loopback
from tests.local.odh import MARK, until
from tests.rest import Rest, served

JOBS = "/api/v1/namespaces/default/mpijobs"
PROGRAM = """
import json, os, time
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
for step in range(300):
    print(json.dumps({"step": step, "max_steps": 300, "loss": 1 / (step + 1), "rank": rank}))
    time.sleep(0.002)
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rest]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(MARK, tmp_path.name)
    loopback = Loopback(LocalBackend(), "odh-session")
    with served(loopback) as port:
        yield Rest(port, loopback.token)
        for folder in store.folders():
            store.remove(folder)


@pytest.mark.timeout(120)
def test_what_ranks_print_becomes_a_series_for_each(server: Rest) -> None:
    job = to_wire(NewJob("one", ("mpirun", "python", "-c", PROGRAM), workers=2).mpijob())
    job["metadata"] = {"name": "one"}
    assert server.ask("POST", JOBS, job).status == 201
    until("the job ends", lambda: server.get(f"{JOBS}/one")["state"] == "Succeeded")
    found = server.get(f"{JOBS}/one/metrics/history?minutes=10")
    assert found["source"] == "log" and "not kept on this machine" in found["notes"][0]
    losses = {one["rank"]: one["points"] for one in found["series"] if one["name"] == "loss"}
    assert sorted(losses) == [0, 1]
    for points in losses.values():
        assert 100 <= len(points) <= 240 and points[-1][1] == pytest.approx(1 / 300)
        assert [at for at, _ in points] == sorted(at for at, _ in points)
    short = server.get("/api/mpijobs/one/metrics/history?namespace=default&minutes=1")
    assert {one["name"] for one in short["series"]} == {one["name"] for one in found["series"]}
    assert server.ask("GET", f"{JOBS}/none/metrics/history").status == 404
