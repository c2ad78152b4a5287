"""A data scientist's place on the shared cluster: a project, a login of their own, an image."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openshift_ai_sdk.training import TrainingClient
from tests.api.accounts import account
from tests.api.running import Controller
from tests.cluster import Kubectl, restricted
from tools.cluster.spec import Spec


@pytest.fixture
def place(
    operator: Controller,
    cluster: Spec,
    image: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Kubectl]:
    """Where `connect()` finds the cluster, with the rights of the role `mpijob-user` and no more.

    Whatever a test left is deleted.
    """
    kubectl = Kubectl(cluster, f"test-sdk-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    folder = tmp_path / "login"
    folder.mkdir()
    path = account(kubectl, "scientist", "mpijob-user").kubeconfig(folder)
    content = json.loads(path.read_text())
    content["contexts"][0]["context"]["namespace"] = kubectl.namespace
    path.write_text(json.dumps(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("MPI_TRAINER_IMAGE", image("mpi-openmpi"))
    yield kubectl
    client = TrainingClient()
    for job in client.list_jobs():
        client.delete_job(job.key.name)
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture
def reads_runtimes(place: Kubectl, shipped_runtimes: tuple[str, ...]) -> Iterator[None]:
    """The user may also read the runtimes of the cluster, which no role of a namespace can give."""
    name, resource = place.namespace, "clustertrainingruntimes.trainer.kubeflow.org"
    place("create", "clusterrole", name, "--verb=get,list,watch", f"--resource={resource}")
    whom = f"--serviceaccount={place.namespace}:scientist"
    place("create", "clusterrolebinding", name, f"--clusterrole={name}", whom)
    yield
    place("delete", "clusterrole,clusterrolebinding", name, "--wait=false")
