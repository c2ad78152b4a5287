"""Jobs that wait ask a real API server for their pods together (AC-16)."""

from __future__ import annotations

import asyncio
from typing import Any

from mpi_trainer.api.kinds.labels import LABEL_TRAINJOB
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.trainjob.pods import AllPods
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import load
from mpi_trainer.kube.requests import Request
from tests.api.test_kube_client import Object, pod
from tests.cluster import Kubectl


class Listening(Client):
    """A client that remembers what it was asked to fetch."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.fetched: list[str] = []

    async def fetch(self, request: Request) -> bytes:
        self.fetched.append(request.path)
        return await super().fetch(request)


def of_job(job: str, name: str) -> Object:
    made = pod(name)
    made["metadata"]["labels"] = {LABEL_TRAINJOB: job}
    return made


def names(pods: tuple[Pod, ...]) -> list[str]:
    return sorted(one.metadata.name for one in pods)


def test_one_list_answers_all_jobs_that_ask_within_a_moment(namespace: Kubectl) -> None:
    pods = (("a", "a-0"), ("a", "a-1"), ("b", "b-0"), ("other", "o-0"))
    namespace.apply(*(of_job(*one) for one in pods))
    place = namespace.namespace

    def job(name: str) -> TrainJob:
        return TrainJob(metadata=ObjectMeta(name=name, namespace=place))

    async def run() -> None:
        config = load(namespace.spec.kubeconfig, namespace=place)
        async with Listening(config) as client, asyncio.timeout(60):
            all_pods = AllPods(client)
            asked = [asyncio.create_task(all_pods.listed(job("a")))]
            await asyncio.sleep(0.05)  # later than the first, and within the moment
            asked += [asyncio.create_task(all_pods.listed(job(name))) for name in ("b", "none")]
            of_a, of_b, of_none = await asyncio.gather(*asked)
            assert names(of_a) == ["a-0", "a-1"]
            assert names(of_b) == ["b-0"]
            assert of_none == ()
            assert len(client.fetched) == 1
            assert names(await all_pods.listed(job("other"))) == ["o-0"]
            assert len(client.fetched) == 2

    asyncio.run(run())
