"""Pages of a list over an API server that counts: one read for one caller, and none for another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mpi_trainer.kube.resources import MPIJOBS
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.server import values
from mpi_trainer.server.callers import Caller
from mpi_trainer.server.calls import call_of
from mpi_trainer.server.endpoints import ENDPOINTS
from mpi_trainer.server.job_reads import JobReads
from mpi_trainer.server.paging import ListQuery
from tests.sim.faults import Fault
from tests.sim.server import Server
from tests.sim.test_shared_watches import job

pytestmark = pytest.mark.timeout(60)
LIST = next(one for one in ENDPOINTS if one.name == "listMPIJobs")
JOBS = 1200
"""of which the API server is asked for 500 at a time"""


class Lab:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.reads = JobReads()
        self.backends: dict[str, ClusterBackend] = {}

    async def page(self, caller: str, token: str = "", **more: Any) -> values.JobList:
        known = self.backends.setdefault(
            caller, ClusterBackend(self.server.config, say=lambda text: None)
        )
        query = ListQuery(limit=500, sort_by="name", continue_=token, **more)
        asked = Caller(caller, known, reads=self.reads)
        call = call_of(LIST, asked, query=query, path={"namespace": "team"})
        found: values.JobList = (await LIST.run(call)).value
        return found

    @property
    def requests(self) -> int:
        return len(self.server.sent("GET", "mpijobs"))


def test_further_pages_cost_no_requests_and_are_nobody_elses() -> None:
    async def run() -> None:
        async with Server() as server:
            for number in range(JOBS):
                server.put(MPIJOBS, job(f"job-{number:04}"))
            lab = Lab(server)
            first = await lab.page("anna")
            assert lab.requests == 3
            second = await lab.page("anna", first.continue_)
            third = await lab.page("anna", second.continue_)
            names = [one.name for part in (first, second, third) for one in part.items]
            assert names == [f"job-{number:04}" for number in range(JOBS)]
            assert lab.requests == 3 and not third.continue_
            await lab.page("ben", first.continue_)
            assert lab.requests == 6, "read with their own login"
            server.faults.append(Fault("answer", code=403, reason="Forbidden", times=9))
            with pytest.raises(K8sApiException):
                await lab.page("carl", first.continue_)

    asyncio.run(run())


def test_many_who_ask_at_once_with_one_login_cost_two_reads() -> None:
    async def run() -> None:
        async with Server() as server:
            for number in range(JOBS):
                server.put(MPIJOBS, job(f"job-{number:04}"))
            lab = Lab(server)
            parts = await asyncio.gather(*(lab.page("anna") for _ in range(20)))
            assert {one.total for one in parts} == {JOBS}
            assert lab.requests <= 2 * 3

    asyncio.run(run())
