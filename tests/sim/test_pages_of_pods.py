"""What pods behind the API server, and what jobs name, cannot do to the person who asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from mpi_trainer.api.yaml import load
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config
from mpi_trainer.sdk.backends.cluster import gpu_metrics, prerequisites
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.gpu_metrics import Pages
from mpi_trainer.sdk.backends.cluster.outages import Outages
from tests.sim.server import Server

LINE = b'DCGM_FI_DEV_GPU_UTIL{UUID="a",namespace="team",pod="p"} 5\n'
PROXIED = "/api/v1/namespaces/team/services/dcgm:9400/proxy/metrics"
JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train, namespace: team}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: mpi, image: mpi, command: [mpirun]}]}}}
    Worker:
      replicas: 1
      template:
        spec:
          containers: [{name: mpi, image: mpi}]
          volumes:
          - {name: one, persistentVolumeClaim: {claimName: "../../secrets/x"}}
          - {name: two, configMap: {name: ""}}
          - {name: three, configMap: {name: "\\e[2Jx"}}
          - {name: four, configMap: {name: settings}}
"""


def connected(config: Config, client: Client) -> ApiServer:
    return ApiServer(client, Outages(config.server, lambda _: None), ())


def read_page(path: str, pieces: Callable[[web.StreamResponse], Awaitable[None]]) -> Pages:
    """`path` as a server gives it that writes `pieces`; an address where it begins with `http`."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await pieces(response)
        return response

    async def run() -> Pages:
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            config = Config(url, source="a test")
            async with Client(config) as client, asyncio.timeout(30):
                return await gpu_metrics.read(
                    connected(config, client), [path.replace("http:", url)]
                )
        finally:
            await runner.cleanup()

    return asyncio.run(run())


@pytest.mark.parametrize("path", [PROXIED, "http:/metrics"])
def test_a_page_without_end_is_read_up_to_a_bound(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_metrics, "LONGEST_PAGE", 1 << 20)
    written = 0

    async def endless(response: web.StreamResponse) -> None:
        nonlocal written
        while written < 1 << 28:
            await response.write(LINE * 1000)
            written += 1000 * len(LINE)

    pages = read_page(path, endless)
    assert pages.problems == ()
    assert ("team", "p") in pages.gpus
    assert written < 1 << 26


@pytest.mark.parametrize("path", [PROXIED, "http:/metrics"])
def test_a_page_that_comes_byte_by_byte_is_given_up(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_metrics, "SECONDS", 1.0)

    async def slow(response: web.StreamResponse) -> None:
        for _ in range(100):
            await response.write(b"D")
            await asyncio.sleep(0.2)

    began = time.monotonic()
    (problem,) = read_page(path, slow).problems
    assert "cannot be read: " in problem
    assert not problem.endswith(": ")
    assert time.monotonic() - began < 15


def test_names_that_nothing_can_have_are_left_to_the_api_server() -> None:
    """Neither a fault of ours nor an escape on the terminal."""

    async def run() -> tuple[list[str], list[str]]:
        async with Server() as server, Client(server.config) as client:
            (job,) = load.jobs(JOB, "job.yaml").jobs
            said = await prerequisites.missing(connected(server.config, client), job)
            return said, [one.path for one in server.sent("GET")]

    assert asyncio.run(run()) == ([], ["/api/v1/namespaces/team/configmaps/settings"])
