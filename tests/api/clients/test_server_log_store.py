"""Lines of pods that are gone come from a log store, for whoever may read logs and nobody else.

The Loki here is scripted: it answers every query with the same streams, in the form of Loki's API
and with the records of OpenShift's collector, and notes what it was asked. So is the Elasticsearch,
which has lines of several namespaces and looks for those that it is asked for, as far as our one
search goes. The API server, its rights and the tokens are real.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from mpi_trainer.kube.config import load
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.log_stores import asking
from mpi_trainer.server.log_stores.settings import LogStoreSettings
from tests.api.accounts import account
from tests.api.clients.test_server import Team, other, ours, theirs
from tests.api.lab import admin, served
from tests.cluster import Kubectl
from tests.rest import Rest
from tests.rest import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "other", "ours", "served", "theirs"]
TEXTS = ("[1,0]<stdout>:first of rank 0", "[1,1]<stdout>:first of rank 1", "[1,0]<stdout>:last")
POD = "ours-launcher-abcde"
JSON = {"Accept": "application/json"}


class Scripted(msgspec.Struct):
    """What came, and how it is answered."""

    address: str = ""
    logins: list[str] = []
    queries: list[str] = []
    status: int = 200
    namespace: str = ""


def answer(record: bool, namespace: str) -> bytes:
    """The newest first, as it was asked for."""
    now = time.time_ns()
    texts = [json.dumps({"message": t, "kubernetes": {}}) if record else t for t in TEXTS]
    values = [[str(now + number), text] for number, text in enumerate(texts)]
    labels = {"kubernetes_namespace_name": namespace, "kubernetes_pod_name": POD}
    stream = {"stream": labels, "values": values[::-1]}
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
            self.wfile.write(answer(len(seen.queries) % 2 == 1, seen.namespace))

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
    space = loki.namespace = ours.admin.namespace
    settings = LogStoreSettings(loki.address, tenancy=True)
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
    loki.namespace = ours.admin.namespace
    kubectl = Kubectl(served, ours.admin.namespace)
    half = account(kubectl, "half")
    where = f"--serviceaccount={ours.admin.namespace}:half"
    for name, kinds in (("jobs", "mpijobs.kubeflow.org"), ("pods", "pods")):
        kubectl("create", "role", name, "--verb=get,list", f"--resource={kinds}")
        kubectl("create", "rolebinding", name, f"--role={name}", where)
    settings = LogStoreSettings(loki.address)
    with serving(PassedOn(load(served.kubeconfig), log_store=settings)) as port:
        logs = f"{ours.jobs}/ours/logs"
        refused = Rest(port, half.token).ask("GET", logs)
        assert refused.status == 403 and "pods/log" in refused.data["detail"], refused
        assert loki.queries == []
        assert len(texts(Rest(port, ours.viewer.token), logs)) == len(TEXTS)
        assert loki.logins == [""], "without tenancy no token leaves the server"


def records(seen: Scripted, body: dict[str, Any], stored: list[dict[str, Any]]) -> bytes:
    """What an Elasticsearch would find, newest first."""
    term, regexp, between = body["query"]["bool"]["filter"]
    ((_, namespace),) = term["term"].items()
    ((_, pods),) = regexp["regexp"].items()
    times = between["range"]["@timestamp"]
    assert regexp["regexp"]["kubernetes.pod_name"]["flags"] == "NONE"
    assert body["sort"] == [{"@timestamp": {"order": "desc", "unmapped_type": "date"}}]
    found = [
        one
        for one in stored
        if namespace in (one["kubernetes"]["namespace_name"], seen.namespace)
        and re.fullmatch(pods["value"], one["kubernetes"]["pod_name"])
        and times["gte"] <= one["@timestamp"] <= times["lte"]
    ]
    found.sort(key=lambda one: one["@timestamp"], reverse=True)
    hits = [{"_index": "app-1", "_source": one} for one in found[: body["size"]]]
    return json.dumps({"took": 1, "timed_out": False, "hits": {"hits": hits}}).encode()


def record(namespace: str, pod: str, text: str, at: int) -> dict[str, Any]:
    where = {"namespace_name": namespace, "pod_name": pod}
    return {"@timestamp": at, "kubernetes": where, "message": text}


@contextmanager
def elasticsearch(stored: list[dict[str, Any]]) -> Iterator[Scripted]:
    seen = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert urlsplit(self.path).path == "/app*/_search"
            seen.logins.append(self.headers.get("Authorization", ""))
            size = int(self.headers["Content-Length"])
            self.send_response(seen.status)
            self.end_headers()
            self.wfile.write(records(seen, json.loads(self.rfile.read(size)), stored))

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    seen.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_logs_of_gone_pods_come_from_elasticsearch_page_by_page(
    served: Spec, ours: Team, theirs: Team
) -> None:
    space, foreign = ours.admin.namespace, theirs.admin.namespace
    now = int(time.time() * 1000)
    stored = [record(space, POD, f"line {n}", now + n // 3) for n in range(2500)]
    stored += [
        record(space, "ours-worker-1", "of a worker", now),
        record(space, "other-launcher-abcde", "of another job", now),
        record(space, POD, "of one before it", now - 24 * 3600 * 1000),
        record(foreign, POD, "secret", now + 2000),
    ]
    with elasticsearch(stored) as store:
        settings = LogStoreSettings(store.address, tenancy=True, kind="elasticsearch")
        with serving(PassedOn(load(served.kubeconfig), log_store=settings)) as port:
            user, logs = Rest(port, ours.user.token), f"{ours.jobs}/ours/logs"
            whole = [(None, f"line {n}") for n in range(2500)]
            assert texts(user, f"{logs}?tail=10000") == whole
            assert texts(user, f"{logs}?tail=3") == whole[-3:]
            assert texts(user, f"{logs}?contains=line+7") == [
                one for one in whole if one[1].startswith("line 7")
            ]
            assert texts(user, f"{logs}/worker/1") == [(None, "of a worker")]
            since = datetime.fromtimestamp((now + 800) / 1000, UTC).strftime("%FT%T.%fZ")
            assert texts(user, f"{logs}?tail=10000&since={since}") == whole[2400:]
            assert set(store.logins) == {f"Bearer {ours.user.token}"}

            # A field of analysed text finds more than was asked for.
            store.namespace = space
            told = user.ask("GET", logs)
            assert told.status >= 400 and "other namespaces" in told.data["detail"], told
            assert b"secret" not in told.body
            store.namespace, store.status = "", 404
            told = user.ask("GET", logs)
            assert told.status >= 400 and "status 404" in told.data["detail"], told


def test_a_store_that_floods_or_sleeps_costs_neither_memory_nor_time(
    served: Spec, ours: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that it sends a few bytes of gzip, and sends without an end; or nothing."""
    monkeypatch.setattr(asking, "SECONDS", 2.0)
    sent: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "direction" not in self.path or "ours-worker-1" in self.path:
                time.sleep(4)  # longer than the store is waited for
                return
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
            with suppress(OSError):
                while True:
                    self.wfile.write(piece)
                    sent.append(len(piece))

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        settings = LogStoreSettings(f"http://127.0.0.1:{server.server_port}")
        with serving(PassedOn(load(served.kubeconfig), log_store=settings)) as port:
            user, logs = Rest(port, ours.user.token), f"{ours.jobs}/ours/logs"
            told = user.ask("GET", logs)
            assert told.status >= 400 and "log store cannot be read" in told.data["detail"], told
            # Five sizes of a page, each within what an answer may hold, and what sockets hold.
            assert sum(sent) < 6 * (asking.LARGEST_ANSWER + (8 << 20))
            told = user.ask("GET", f"{logs}/worker/1")
            assert told.status >= 400 and "took longer" in told.data["detail"], told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
