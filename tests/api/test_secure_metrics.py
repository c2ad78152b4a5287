"""S-16: metrics name all tenants; they are for whom the cluster lets read them, and no others."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api.accounts import Account, account, with_token
from tests.api.admission.serving import NAMESPACE, install, start
from tests.api.running import Controller, ask_metrics, free_port
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

READER = "mpi-trainer-metrics-reader"
NAME = 'rest_client_requests_total{code="201"'


class Server:
    """A process that serves metrics: by TLS here, its probes there, and what it logged."""

    def __init__(self, port: int, probes: int, log: Callable[[], str]) -> None:
        self.port, self.probes, self.log = port, probes, log

    def ask(self, authorization: str = "") -> tuple[int, str]:
        return ask_metrics(self.port, authorization)

    def plain(self, path: str) -> tuple[int, str]:
        try:
            url = f"http://127.0.0.1:{self.probes}{path}"
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""


@pytest.fixture(params=["controller", "webhook"])
def server(request: pytest.FixtureRequest, kubectl: Kubectl, tmp_path: Path) -> Iterator[Server]:
    install(kubectl)
    port = free_port()
    flags = ("--secure-metrics", f"--metrics-port={port}")
    if request.param == "controller":
        config = with_token(Kubectl(kubectl.spec, NAMESPACE), "mpi-trainer").kubeconfig(tmp_path)
        with Controller.alone(config, "default", *flags) as controller:
            yield Server(port, controller.port, controller.log)
        return
    door = free_port()
    replica = start(kubectl.spec, tmp_path, door, *flags)
    try:
        eventually("the webhook is ready", replica.ready)
        log = tmp_path / f"webhook-{door}.log"
        yield Server(port, replica.probe_port, log.read_text)
    finally:
        replica.stop()


def allowed(namespace: Kubectl) -> Account:
    reader = account(namespace, "prometheus")
    whom = f"--serviceaccount={namespace.namespace}:prometheus"
    name = f"{namespace.namespace}-reads-metrics"
    namespace("create", "clusterrolebinding", name, f"--clusterrole={READER}", whom)
    return reader


def test_only_whom_the_cluster_lets_reads_the_metrics(server: Server, namespace: Kubectl) -> None:
    """No token and a wrong one: 401; an account without the right: 403; with it: 200."""
    reader, other = allowed(namespace), account(namespace, "tenant")
    assert server.ask()[0] == 401
    assert server.ask("Basic dXNlcjpwYXNz")[0] == 401
    assert server.ask("Bearer")[0] == 401
    assert server.ask("Bearer made-up-by-somebody")[0] == 401
    assert server.ask(f"Bearer {other.token}") == (403, "Forbidden")
    eventually("the right is known", lambda: server.ask(f"Bearer {reader.token}")[0] == 200, 40)
    status, text = server.ask(f"Bearer {reader.token}")
    assert status == 200 and NAME in text
    calls = _reviews(text)
    for _ in range(20):
        assert server.ask(f"Bearer {reader.token}")[0] == 200
    assert _reviews(server.ask(f"Bearer {reader.token}")[1]) == calls, "answers are kept a while"
    # Nothing of it on the port of the probes, and no token in the log.
    assert server.plain("/healthz") == (200, "ok")
    assert server.plain("/readyz") == (200, "ok")
    assert server.plain("/metrics")[0] == 404
    for token in (reader.token, other.token, "made-up-by-somebody"):
        assert token not in server.log()


def _reviews(text: str) -> float:
    """How many objects were made so far: reviews, by a program that makes nothing else."""
    rows = [r for r in text.splitlines() if r.startswith("rest_client_requests_total")]
    return sum(float(r.split()[-1]) for r in rows if 'method="POST"' in r)


def test_where_the_cluster_cannot_be_asked_nobody_reads(
    kubectl: Kubectl, namespace: Kubectl, api_server: Spec, tmp_path: Path
) -> None:
    """The controller's account without the right to ask: no answer means no."""
    install(kubectl)
    config = with_token(Kubectl(kubectl.spec, NAMESPACE), "mpi-trainer").kubeconfig(tmp_path)
    port, reader = free_port(), allowed(namespace)
    kubectl("delete", "clusterrolebinding", "mpi-trainer-metrics-auth", "mpi-trainer-webhook")
    try:
        flags = ("--secure-metrics", f"--metrics-port={port}")
        with Controller.alone(config, "default", *flags) as controller:
            server = Server(port, controller.port, controller.log)
            assert server.ask(f"Bearer {reader.token}") == (503, "Service Unavailable")
            assert "cannot tell who may read the metrics" in controller.log()
            assert reader.token not in controller.log()
    finally:
        install(kubectl)
