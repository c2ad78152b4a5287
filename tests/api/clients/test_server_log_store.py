"""Lines of pods that are gone come from a log store, for whoever may read logs and nobody else.

The Loki here is scripted: it answers every query with the same streams, in the form of Loki's API
and with the records of OpenShift's collector, and notes what it was asked. The API server, its
rights and the tokens are real.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.loki import LokiSettings
from tests.api.accounts import account
from tests.api.clients.test_server import Team, other, ours, theirs
from tests.api.lab import admin, served
from tests.cluster import Kubectl
from tests.rest import Rest
from tests.rest import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "served", "theirs"]
TEXTS = ("[1,0]<stdout>:first of rank 0", "[1,1]<stdout>:first of rank 1", "[1,0]<stdout>:last")
JSON = {"Accept": "application/json"}


class Scripted(msgspec.Struct):
    """What came, and how it is answered."""

    address: str = ""
    logins: list[str] = []
    queries: list[str] = []
    status: int = 200


def answer(record: bool) -> bytes:
    """The newest first, as it was asked for."""
    now = time.time_ns()
    texts = [json.dumps({"message": t, "kubernetes": {}}) if record else t for t in TEXTS]
    values = [[str(now + number), text] for number, text in enumerate(texts)]
    stream = {"stream": {"kubernetes_pod_name": "ours-launcher-abcde"}, "values": values[::-1]}
    return json.dumps({"status": "success", "data": {"result": [stream]}}).encode()


@pytest.fixture
def loki() -> Iterator[Scripted]:
    seen = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            assert parts.path == "/tenant/loki/api/v1/query_range"
            seen.logins.append(self.headers.get("Authorization", ""))
            seen.queries += parse_qs(parts.query)["query"]
            self.send_response(seen.status)
            self.end_headers()
            self.wfile.write(answer(record=len(seen.queries) % 2 == 1))

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    seen.address = f"http://127.0.0.1:{server.server_port}/tenant"
    yield seen
    server.shutdown()
    thread.join()
    server.server_close()


def texts(server: Rest, path: str) -> list[tuple[int | None, str]]:
    reply = server.ask("GET", path, headers=JSON)
    assert reply.status == 200, reply
    return [(one["rank"], one["text"]) for one in reply.data["items"]]


def test_logs_of_gone_pods_come_from_the_store_with_the_callers_token(
    served: Spec, ours: Team, theirs: Team, loki: Scripted
) -> None:
    """AC-9."""
    space = ours.admin.namespace
    settings = LokiSettings(loki.address, tenancy=True)
    with serving(PassedOn(load(served.kubeconfig), log_store=settings)) as port:
        user = Rest(port, ours.user.token)
        logs = f"{ours.jobs}/ours/logs"
        whole = [(0, "first of rank 0"), (1, "first of rank 1"), (0, "last")]
        assert texts(user, logs) == whole, "out of the collector's records"
        assert texts(user, logs) == whole, "as they were written"
        assert texts(user, f"{logs}?rank=0&tail=1") == [(0, "last")]
        assert texts(user, f"{logs}?contains=rank+1") == [(1, "first of rank 1")]
        assert set(loki.logins) == {f"Bearer {ours.user.token}"}
        assert set(loki.queries) == {
            f'{{kubernetes_namespace_name="{space}",'
            'kubernetes_pod_name=~"ours-launcher(-[a-z0-9]+)?"}'
        }
        loki.queries.clear()
        texts(user, f"{logs}/worker/3")
        texts(user, f"{logs}?pod=ours-worker-1")
        texts(user, f"{logs}?pod=theirs-worker-1")
        found = [one.partition('pod_name=~"')[2].rstrip('"}') for one in loki.queries]
        assert found == ["ours-worker-3", "ours\\\\-worker\\\\-1", "-"], "no pod of another job"

        loki.queries.clear()
        refused = user.ask("GET", f"{theirs.jobs}/theirs/logs")
        assert refused.status == 403 and loki.queries == []

        loki.status = 403
        told = user.ask("GET", logs)
        assert told.status >= 400 and "does not let you read logs" in told.data["detail"]


def test_who_may_not_read_logs_gets_none_from_a_store_that_asks_nobody(
    served: Spec, ours: Team, loki: Scripted
) -> None:
    kubectl = Kubectl(served, ours.admin.namespace)
    half = account(kubectl, "half")
    where = f"--serviceaccount={ours.admin.namespace}:half"
    for name, kinds in (("jobs", "mpijobs.kubeflow.org"), ("pods", "pods")):
        kubectl("create", "role", name, "--verb=get,list", f"--resource={kinds}")
        kubectl("create", "rolebinding", name, f"--role={name}", where)
    settings = LokiSettings(loki.address)
    with serving(PassedOn(load(served.kubeconfig), log_store=settings)) as port:
        logs = f"{ours.jobs}/ours/logs"
        refused = Rest(port, half.token).ask("GET", logs)
        assert refused.status == 403 and "pods/log" in refused.data["detail"], refused
        assert loki.queries == []
        assert len(texts(Rest(port, ours.viewer.token), logs)) == len(TEXTS)
        assert loki.logins == [""], "without tenancy no token leaves the server"
