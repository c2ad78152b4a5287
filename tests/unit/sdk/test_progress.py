"""How far jobs are, asked of a cluster that is slow to answer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.requests import Request
from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.sdk.backends.cluster import progress

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
