"""REST and gRPC from pods of the cluster: `tests/lifecycle.py` over both, on its nodes (SC-004).

The server runs from the project's image, by manifests/server, with an account that may do nothing;
the callers' tokens are those of the role `mpijob-user` and no more. By hand: it takes minutes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpi_trainer.sdk.backends.backend import Backend
from mpi_trainer.sdk.client import clients
from mpi_trainer.sdk.job import handle, mpijob
from openshift_ai_sdk.training import MPIJob
from tests import rest, rpc
from tests.api.accounts import with_token
from tests.cluster import Kubectl, restricted
from tests.e2e.manifests import pod
from tests.e2e.notebook import place
from tests.e2e.server import SERVER, deployed, forwarded, replicas
from tests.e2e.test_manifests import KNOCK
from tests.lifecycle import (
    endless,
    test_attempts_are_as_the_policy_says,
    test_failure_is_told_at_once_with_rank_and_reason,
    test_job_deleted_while_somebody_follows_ends_the_following,
    test_life_of_a_job,
    test_life_of_a_job_asynchronously,
)
from tests.live_reader import LiveReader
from tests.rest import Rest
from tests.rpc import Ports, Rpc
from tools.cluster.spec import Spec

__all__ = [
    "place",
    "test_attempts_are_as_the_policy_says",
    "test_failure_is_told_at_once_with_rank_and_reason",
    "test_job_deleted_while_somebody_follows_ends_the_following",
    "test_life_of_a_job",
    "test_life_of_a_job_asynchronously",
]

pytestmark = [pytest.mark.timeout(400, func_only=True), pytest.mark.usefixtures("over")]


@pytest.fixture(scope="module")
def home(cluster: Spec) -> Iterator[Kubectl]:
    kubectl = Kubectl(cluster, f"test-server-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture(scope="module")
def ports(
    home: Kubectl, image: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ports]:
    image("mpi-trainer")
    with deployed(home, tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture(params=["REST", "gRPC"])
def over(
    request: pytest.FixtureRequest,
    ports: Ports,
    place: Kubectl,
    image: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Rest:
    """SDK programs of a test go by one of the two, and have no other way to the cluster."""
    token = with_token(place, "scientist").token
    monkeypatch.delenv("KUBECONFIG")
    asked = Rest(ports.rest, token)
    to = (place.namespace, image("mpi-openmpi"))

    def connect() -> Backend:
        if request.param == "REST":
            return rest.backend(asked, *to)
        return rpc.backend(asked, Rpc(ports.rpc, token), *to)

    for module in (handle, mpijob, clients):
        monkeypatch.setattr(module, "connect", connect)
    return asked


def test_its_pods_hold_no_login_and_their_account_may_do_nothing(home: Kubectl, over: Rest) -> None:
    """SC-009."""
    found = with_token(home, SERVER)
    asked = dict.fromkeys(("secrets", "pods", "pods/log", "mpijobs", "configmaps", "leases"), "")
    assert found.rights(asked, home.namespace) == asked
    mounted = "/var/run/secrets/kubernetes.io/serviceaccount"
    listed = home.run_in(f"deployment/{SERVER}", "ls", mounted)
    assert "No such file" in listed.stderr, listed
    assert Rest(over.port).ask("GET", "/api/v1/jobs").status == 401
    assert Rest(over.port, found.token).ask("GET", "/api/v1/jobs").status == 403
    foreign = over.ask("GET", f"/api/v1/namespaces/{home.namespace}/mpijobs")
    assert foreign.status == 403, foreign


def test_only_namespaces_of_proxies_reach_its_ports(
    home: Kubectl, cluster: Spec, image: Callable[[str], str]
) -> None:
    """Tokens cross them in the clear."""
    address = home.get("service", SERVER)["spec"]["clusterIP"]
    reference = image("mpi-openmpi")
    proxy = Kubectl(cluster, f"test-proxy-{secrets.token_hex(4)}")
    made = restricted(proxy.namespace)
    made["metadata"]["labels"]["mpi-trainer.opendatahub.io/proxy"] = "true"
    proxy.apply(made)
    try:
        for port in ("8080", "9090"):
            knock = [word.replace("2222", port) for word in ("python3", "-c", KNOCK, address)]
            friend, stranger = f"friend-{port}", f"stranger-{port}"
            proxy.apply(pod(friend, reference, 1, [*knock, "60"], restartPolicy="Never"))
            proxy.wait("--for=jsonpath={.status.phase}=Succeeded", f"pod/{friend}", seconds=180)
            # The network knows the ports by now, so whoever stays outside is meant to.
            home.apply(pod(stranger, reference, 1, [*knock, "15"], restartPolicy="Never"))
            home.wait("--for=jsonpath={.status.phase}=Failed", f"pod/{stranger}", seconds=180)
            assert "closed" in home("logs", stranger)
    finally:
        proxy("delete", "namespace", proxy.namespace, "--wait=false")


def test_a_reader_of_logs_goes_on_at_the_other_replica(
    home: Kubectl, place: Kubectl, over: Rest, tmp_path: Path
) -> None:
    """Each line once, though the replica that told the first ones is killed."""
    second, first = replicas(home)  # the SDK goes on at the older one
    job = endless()
    path = f"/api/v1/namespaces/{place.namespace}/mpijobs/{job.name}/logs/live?rank=0"
    with forwarded(home, second, tmp_path / "second", 8080) as (there,):
        with forwarded(home, first, tmp_path / "first", 8080) as (here,):
            with LiveReader(Rest(here, over.token), path) as reader:
                _until(reader, 20)
                home("delete", first, "--grace-period=0", "--force")
                assert reader.ended.wait(30)
            lines = _epochs(reader)
        with LiveReader(Rest(there, over.token), path, reader.position) as again:
            _until(again, 20)
            lines += _epochs(again)
    assert lines == [*range(1, len(lines) + 1)]
    MPIJob.get(job.name).delete()


def _until(reader: LiveReader, number: int) -> None:
    while len(_epochs(reader)) < number:
        reader.next("lines")


def _epochs(reader: LiveReader) -> list[int]:
    lines = (
        line for event in reader.heard if event.event == "lines" for line in event.data["items"]
    )
    return [int(line["text"].split()[1].partition("/")[0]) for line in lines]
