"""How far jobs are, asked of a cluster that is slow to answer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.requests import Request
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.backends.cluster import observed, progress

JOB = JobSummary(key=Key("ns", "pi"), state="Running", created=datetime(2026, 1, 31, tzinfo=UTC))


class Silent:
    """Answers nothing; the client of short commands waits as long as a request says."""

    def __init__(self) -> None:
        self.waited = 0.0

    async def fetch(self, request: Request) -> Any:
        self.waited += request.timeout * request.tries
        raise KubeError("no answer")


def test_a_list_does_not_wait_for_pods_longer_than_it_says() -> None:
    client = Silent()
    server: Any = SimpleNamespace(client=client)
    assert asyncio.run(progress.with_progress(server, "ns", [JOB])) == [JOB]
    assert 0 < client.waited <= progress.SECONDS


class Answering:
    """Has running pods, and the end of each one's log."""

    def __init__(self, pods: list[dict[str, Any]], logs: dict[str, bytes]) -> None:
        self.pods = pods
        self.logs = logs

    def decode(self, request: Request, body: bytes, kind: Any) -> Any:
        return msgspec.json.decode(body, type=kind)

    async def fetch(self, request: Request) -> Any:
        if not request.path.endswith("/log"):
            return msgspec.json.encode({"metadata": {}, "items": self.pods})
        return self.logs[request.path.split("/")[-2]]


def pod(role: str) -> dict[str, Any]:
    labels = {"jobset.sigs.k8s.io/jobset-name": "pi", "jobset.sigs.k8s.io/replicatedjob-name": role}
    meta = {"name": f"pi-{role}-0-0", "namespace": "ns", "labels": labels}
    spec = {"containers": [{"name": role}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def test_data_that_is_fetched_is_a_trainjobs_progress_until_its_nodes_run() -> None:
    """CTL-9: in lists and in what `describe` and the dashboard show."""
    line = b"2026-01-31T00:00:00.000000000Z dataset  45%| 1.2/2.7 GiB, 3/10 files, 85.0 MiB/s\n"
    trains = b"2026-01-31T00:00:00.000000000Z epoch 1/4\n"
    logs = {"pi-dataset-initializer-0-0": line, "pi-node-0-0": trains}
    waiting = msgspec.structs.replace(JOB, kind="TrainJob", state="Created")
    for pods, done in (
        ([pod("dataset-initializer")], 0.45),
        ([pod("node"), pod("dataset-initializer")], 0.25),
    ):
        server: Any = SimpleNamespace(client=Answering(pods, logs))
        (found,) = asyncio.run(progress.with_progress(server, "ns", [waiting]))
        assert found.progress is not None and found.progress.fraction == done
    seen = [msgspec.convert(pod("dataset-initializer"), observed.Pod)]
    said = asyncio.run(progress.log_end(server, seen)).progress
    assert said is not None and said.fraction == 0.45
