"""Every call of REST and gRPC by every kind of caller, with real tokens, as one table (SC-009).

`server_rights.txt` beside this file is the table: who is answered (`yes`, if with nothing of that
namespace, or that there is no such runtime), and who is refused by the cluster (`403`) or not known
(`401`). Each call is about a namespace with a job of each kind, whose annotations hold a word that
nobody else may ever be sent: a stranger, who may do everything in another namespace, and somebody
without a login. `WRITE=1` writes the table anew; read the diff. By hand.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.endpoint import Endpoint
from mpi_trainer.server.endpoints import ENDPOINTS
from mpi_trainer.server.endpoints.live import STREAMS
from mpi_trainer.server.rates import Rate
from mpi_trainer.server.rpc import methods
from tests.api.accounts import Account, account
from tests.api.admin import JOBS, Admin
from tests.api.clients.test_rpc import known_to_collector
from tests.api.clients.test_sdk_roles import ROLES
from tests.api.lab import CRD, admin
from tests.api.trainjob_lab import train_server
from tests.both_ways import manifest
from tests.cluster import Kubectl, eventually
from tests.live_reader import LiveReader
from tests.local.test_server_lists import trainjob
from tests.rest import Rest
from tests.rpc import Ports, Refusal, Rpc
from tests.rpc import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "train_server"]

TABLE = Path(__file__).with_name("server_rights.txt")
WORD = f"only-for-this-team-{secrets.token_hex(8)}"
TRAINJOBS = "apis/trainer.kubeflow.org/v1alpha1/trainjobs"
CALLERS = ("user", "viewer", "stranger", "nobody")
RUNS = ("/test", "/restart")
"""calls that wait for pods, of which there are none: nobody makes them here who may"""

pytestmark = [pytest.mark.full, pytest.mark.timeout(600, func_only=True)]
other = admin
"""the same fixture again, for a second namespace"""


class Place(msgspec.Struct, frozen=True):
    admin: Admin
    user: Account
    viewer: Account

    def there(self) -> None:
        """Both jobs as they were at first, whatever a call did."""
        for path, made in (
            (f"{JOBS}/mpijobs", manifest("there")),
            (TRAINJOBS, trainjob("there")),
        ):
            if self.admin.get(f"{path}/there") is None:
                made["metadata"]["namespace"] = self.admin.namespace
                made["metadata"]["annotations"] = {"word": WORD}
                self.admin.create(path, made)


@pytest.fixture(scope="module")
def served(train_server: Spec) -> Spec:
    """With both kinds of jobs."""
    kubectl = Kubectl(train_server)
    kubectl("apply", "-f", str(CRD))
    eventually("mpijobs are served", lambda: not kubectl.attempt("get", "mpijobs").returncode)
    return train_server


@pytest.fixture(scope="module")
def ports(served: Spec) -> Iterator[Ports]:
    """A server whose own login is the administrator's, and must not be used."""
    callers = PassedOn(load(served.kubeconfig))
    with serving(callers, Settings(rate=Rate(10_000, 10_000))) as found:
        yield found


@pytest.fixture
def place(admin: Admin, served: Spec) -> Place:
    kubectl = Kubectl(served, admin.namespace)
    kubectl("apply", "-k", str(ROLES))
    found = Place(
        admin, account(kubectl, "user", "mpijob-user"), account(kubectl, "viewer", "mpijob-viewer")
    )
    found.there()
    known_to_collector(found)  # type: ignore[arg-type]
    return found


@pytest.fixture
def tokens(place: Place, other: Admin, served: Spec) -> dict[str, str]:
    stranger = account(Kubectl(served, other.namespace), "user", "mpijob-user")
    return dict(
        zip(CALLERS, (place.user.token, place.viewer.token, stranger.token, ""), strict=True)
    )


def body_of(endpoint: Endpoint, namespace: str) -> Any:
    if endpoint.name.startswith("clone"):
        return {"name": f"copy-{secrets.token_hex(4)}"}
    if endpoint.method != "POST" or endpoint.body is None:
        return None
    kind = trainjob if "TrainJob" in endpoint.name else manifest
    made = kind(f"new-{secrets.token_hex(4)}")
    made["metadata"]["namespace"] = namespace
    return made


def path_of(template: str, namespace: str) -> str:
    path = template.format(namespace=namespace, name="there", index=0)
    return path if "{namespace}" in template else f"{path}?namespace={namespace}"


def verdict(status: int) -> str:
    assert status < 500, status
    return str(status) if status in (401, 403) else "yes"


def by_rest(endpoint: Endpoint, place: Place, server: Rest) -> tuple[str, bytes]:
    namespace = place.admin.namespace
    body = body_of(endpoint, namespace)
    reply = server.ask(endpoint.method, path_of(endpoint.path, namespace), body)
    return verdict(reply.status), reply.body


def by_stream(path: str, place: Place, server: Rest) -> tuple[str, bytes]:
    with LiveReader(server, path_of(path, place.admin.namespace)) as reader:
        if reader.status != 200:
            return verdict(reader.status), json.dumps(reader.problem).encode()
        first = reader.next()
        return verdict(reader.status), json.dumps(first.data).encode()


def by_rpc(method: Any, place: Place, server: Rpc) -> tuple[str, bytes]:
    about = {"namespace": place.admin.namespace}
    if "Create" in method.name:
        about["manifest_json"] = json.dumps(manifest(f"new-{secrets.token_hex(4)}"))
    elif "List" not in method.name:
        about["name"] = "there"
    answer = server.ask(method.name, method.request(**about), timeout=3.0)
    if isinstance(answer, Refusal):
        codes = {"PERMISSION_DENIED": "403", "UNAUTHENTICATED": "401", "DEADLINE_EXCEEDED": "yes"}
        return codes[answer.code.name], repr(answer).encode()
    found = answer if isinstance(answer, list) else [answer]
    return "yes", b"".join(one.SerializeToString() for one in found)


def test_every_call_by_every_caller_is_as_the_table_says(
    ports: Ports, place: Place, tokens: dict[str, str]
) -> None:
    rows, calls, leaked = [], 0, []
    for name, ask in _calls(ports, place):
        found = []
        for caller in CALLERS:
            if name.partition(" ")[2].endswith(RUNS) and caller == "user":
                found.append("-")
                continue
            place.there()
            said, sent = ask(tokens[caller])
            calls += 1
            found.append(said)
            if caller in ("stranger", "nobody") and WORD.encode() in sent:
                leaked.append((name, caller))
        rows.append(f"{name:74}" + "".join(f"{one:>10}" for one in found).rstrip())
    head = f"{'':74}" + "".join(f"{one:>10}" for one in CALLERS)
    table = "\n".join((head, *rows, ""))
    print(f"{calls} calls, {len(leaked)} foreign objects")
    if os.environ.get("WRITE"):
        TABLE.write_text(table)
    assert leaked == []
    assert table == TABLE.read_text()


def _calls(ports: Ports, place: Place) -> Iterator[tuple[str, Any]]:
    for one in ENDPOINTS:
        yield (
            f"{one.method} {one.path}",
            lambda token, one=one: by_rest(one, place, Rest(ports.rest, token)),
        )
    for each in STREAMS:
        yield (
            f"GET {each.path}",
            lambda token, path=each.path: by_stream(path, place, Rest(ports.rest, token)),
        )
    by_grpc: tuple[Any, ...] = (*methods.METHODS, *methods.STREAMS)
    for method in by_grpc:
        yield (
            f"gRPC {method.name}",
            lambda token, method=method: by_rpc(method, place, Rpc(ports.rpc, token)),
        )
