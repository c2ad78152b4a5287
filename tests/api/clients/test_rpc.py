"""gRPC before a real API server, with real tokens of several users: the answers and the rights are
those of REST (SC-004, SC-009).

The server has a login that may do everything, and must not use it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1
from tests.api.accounts import Account, account
from tests.api.admin import JOBS, Admin
from tests.api.clients.test_sdk_roles import ROLES
from tests.api.lab import admin, served
from tests.api.running import free_port
from tests.both_ways import CASES, ByRest, ByRpc, Case, Outcome, Way, check, manifest
from tests.cluster import Kubectl, eventually
from tests.rest import Rest
from tests.rpc import Ports, Refusal, Rpc
from tests.rpc import served as serving
from tools.cluster.spec import Spec

# isort: split
import grpc

__all__ = ["admin", "served"]

FORBIDDEN: Any = {"http": 403, "grpc": "PERMISSION_DENIED", "problem": "cluster"}
BY_VIEWER = [
    Case("a viewer lists", lambda way: way.list(), has=lambda found: found["total"] == 1),
    Case("a viewer reads", lambda way: way.get("there"), has=lambda job: job["name"] == "there"),
    Case(
        "a viewer creates nothing",
        lambda way: way.create(manifest("new")),
        **FORBIDDEN,
        says="Ask an administrator for the right",
    ),
    Case("a viewer deletes nothing", lambda way: way.delete("there"), **FORBIDDEN),
]
BY_STRANGER = [
    Case("a stranger lists nothing", lambda way: way.list(), **FORBIDDEN),
    Case("a stranger reads nothing", lambda way: way.get("there"), **FORBIDDEN),
    Case("a stranger does not learn what is there", lambda way: way.get("none"), **FORBIDDEN),
    Case("a stranger sees no status", lambda way: way.status("there"), **FORBIDDEN),
    Case("a stranger sees no log", lambda way: way.logs("there"), **FORBIDDEN),
    Case("a stranger creates nothing", lambda way: way.create(manifest("new")), **FORBIDDEN),
    Case("a stranger deletes nothing", lambda way: way.delete("there"), **FORBIDDEN),
]
UNKNOWN: Any = {"http": 401, "grpc": "UNAUTHENTICATED"}
BY_NOBODY = [
    Case("without a token", lambda way: way.list(), **UNKNOWN, problem="unauthorized"),
    Case("without a token, no log", lambda way: way.logs("x"), **UNKNOWN, problem="unauthorized"),
]


class Team(msgspec.Struct, frozen=True):
    """A namespace with the job `there`, and who works in it."""

    admin: Admin
    user: Account
    viewer: Account


@pytest.fixture(scope="module")
def ports(served: Spec) -> Iterator[Ports]:
    """A server whose own login is the administrator's."""
    with serving(PassedOn(load(served.kubeconfig))) as found:
        yield found


@pytest.fixture
def team(admin: Admin, served: Spec) -> Team:
    kubectl = Kubectl(served, admin.namespace)
    kubectl("apply", "-k", str(ROLES))
    admin.create(f"{JOBS}/mpijobs", manifest("there"))
    user = account(kubectl, "user", "mpijob-user")
    return Team(admin, user, account(kubectl, "viewer", "mpijob-viewer"))


other = admin
"""the same fixture again, for a second namespace"""


@pytest.fixture
def stranger(other: Admin, served: Spec, team: Team) -> Account:
    return account(Kubectl(served, other.namespace), "user", "mpijob-user")


@pytest.fixture(params=["REST", "gRPC"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def way(kind: str, ports: Ports, team: Team, token: str) -> Way:
    namespace = team.admin.namespace
    if kind == "REST":
        return ByRest(Rest(ports.rest, token), namespace)
    return ByRpc(Rpc(ports.rpc, token), namespace)


def there(team: Team) -> None:
    """As it was at first, whatever a case did."""
    found = team.admin.get(f"{JOBS}/mpijobs") or {}
    names = {one["metadata"]["name"] for one in found["items"]}
    for name in names - {"there"}:
        team.admin.delete(f"{JOBS}/mpijobs/{name}")
    if "there" not in names:
        team.admin.create(f"{JOBS}/mpijobs", manifest("there"))


def known_to_collector(team: Team) -> None:
    """Until Kubernetes' garbage collector has seen a new kind, which takes it up to 30 seconds,
    deleted jobs stay, and calls to delete answer that they are not gone yet."""
    team.admin.delete(f"{JOBS}/mpijobs/there", propagation="Foreground")
    eventually("deleted jobs go", lambda: team.admin.get(f"{JOBS}/mpijobs/there") is None)


def test_both_ways_answer_alike(kind: str, ports: Ports, team: Team) -> None:
    """All cases in one test: a namespace takes seconds, a case does not."""
    asked = way(kind, ports, team, team.user.token)
    known_to_collector(team)
    for case in CASES:
        there(team)
        check(case, asked)


def test_rights_are_the_callers_own(kind: str, ports: Ports, team: Team, stranger: Account) -> None:
    for token, cases in (
        (team.viewer.token, BY_VIEWER),
        (stranger.token, BY_STRANGER),
        ("", BY_NOBODY),
    ):
        for case in cases:
            check(case, way(kind, ports, team, token))
    unknown: Outcome = way(kind, ports, team, "made.up.token").list()
    assert unknown.code in (401, "UNAUTHENTICATED")
    assert "does not accept your login" in unknown.says


def test_a_watch_sees_what_the_cluster_changes(ports: Ports, team: Team) -> None:
    namespace = team.admin.namespace
    request = v1.WatchMPIJobStatusRequest(namespace=namespace, name="there")
    with grpc.insecure_channel(f"127.0.0.1:{ports.rpc}") as channel:
        asked = Rpc(ports.rpc, team.viewer.token)
        stream = asked.stub(channel).WatchMPIJobStatus(request, metadata=asked.metadata)
        assert next(stream).status.name == "there"
        team.admin.delete(f"{JOBS}/mpijobs/there")
        *_, last = stream
    assert last.deleted.name == "there"


def test_a_watch_ends_when_the_right_is_gone(ports: Ports, team: Team) -> None:
    """Within about a minute."""
    namespace = team.admin.namespace
    request = v1.WatchMPIJobStatusRequest(namespace=namespace, name="there")
    with grpc.insecure_channel(f"127.0.0.1:{ports.rpc}") as channel:
        asked = Rpc(ports.rpc, team.viewer.token)
        stream = asked.stub(channel).WatchMPIJobStatus(request, metadata=asked.metadata)
        assert next(stream).status.name == "there"
        Kubectl(team.admin.spec, namespace)("delete", "rolebindings", "--all")
        with pytest.raises(grpc.RpcError) as caught:
            for _ in stream:
                pass
    error: Any = caught.value
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED


def test_the_server_runs_as_a_process_of_its_own_with_tls(
    served: Spec, team: Team, tmp_path: Path
) -> None:
    """As docs/grpc.md has it; a certificate that is renewed holds from the next connection on."""
    rest_port, port = free_port(), free_port()
    key, certificate = self_signed(tmp_path, "one")
    options = (
        *("--kubeconfig", str(served.kubeconfig), "--port", str(rest_port)),
        *("--grpc-port", str(port)),
        *("--grpc-certificate", str(certificate), "--grpc-key", str(key)),
    )
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mpi_trainer.server", *options], stderr=log
        )
    try:
        first = certificate.read_bytes()
        eventually("gRPC is served", lambda: names(port, team, first) == ["there"])
        plain = Rpc(port, team.user.token).ask("ListMPIJobs", v1.ListMPIJobsRequest())
        assert isinstance(plain, Refusal) and plain.code is grpc.StatusCode.UNAVAILABLE
        self_signed(tmp_path, "one")
        second = certificate.read_bytes()
        assert second != first
        assert names(port, team, second) == ["there"]
        assert names(port, team, first) == []
    finally:
        process.terminate()
        assert process.wait(30) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["level"] for line in lines if line["level"] != "info"] == []


def names(port: int, team: Team, trusted: bytes) -> list[str]:
    request = v1.ListMPIJobsRequest(namespace=team.admin.namespace)
    login = grpc.ssl_channel_credentials(trusted)
    asked = Rpc(port, team.user.token)
    with grpc.secure_channel(f"localhost:{port}", login) as channel:
        try:
            found = asked.stub(channel).ListMPIJobs(request, metadata=asked.metadata, timeout=10)
        except grpc.RpcError:
            return []
    return [one.name for one in found.items]


def self_signed(folder: Path, name: str) -> tuple[Path, Path]:
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, certificate
