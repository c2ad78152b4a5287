"""What the API server has forgotten, and how our client says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import load
from mpi_trainer.kube.errors import ApiError, Gone
from mpi_trainer.kube.resources import CONFIGMAPS, Resource
from mpi_trainer.kube.watch import watch
from tests.api.test_kube_client import Thing, play
from tests.cluster import Kubectl, eventually


@pytest.fixture
def young(kubectl: Kubectl) -> Iterator[Resource]:
    """A kind that is younger than the server's first versions, so it has no memory of them."""
    names = {"plural": "youngs", "singular": "young", "kind": "Young"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "youngs.test.example.com"},
        "spec": {
            "group": "test.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
    kubectl("apply", "-f", "-", data=json.dumps(crd))
    eventually("its list", lambda: not kubectl.attempt("get", "youngs").returncode)
    yield Resource("test.example.com", "v1", "youngs", "Young")
    kubectl("delete", "crd", "youngs.test.example.com")


def test_a_version_from_long_ago_is_gone(namespace: Kubectl, young: Resource) -> None:
    async def script(client: Client) -> None:
        request = requests.watch(young, resource_version="1", seconds=3)
        with pytest.raises(Gone):
            async with aclosing(watch(client, request, Thing)) as events:
                async for _ in events:
                    pass
        page = requests.list_page(CONFIGMAPS, continue_="nonsense")
        with pytest.raises(ApiError):
            await client.call(page)

    play(load(namespace.spec.kubeconfig), script)
