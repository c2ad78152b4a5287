"""The REST API over jobs of this machine: their whole life by HTTP, and what it refuses."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.api.kinds.mpijob import RunPolicy, to_wire
from mpi_trainer.local.jobs import store
from mpi_trainer.runtime.logs import JsonFormatter
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.client import clients
from mpi_trainer.sdk.job import handle, mpijob
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server import calls
from mpi_trainer.server.app import HEADERS, Settings
from mpi_trainer.server.callers import Loopback
from mpi_trainer.server.forgery import MARK
from mpi_trainer.server.rates import Rate
from tests import rest
from tests.forkserver import INSTALLED
from tests.lifecycle import (
    test_failure_is_told_at_once_with_rank_and_reason,
    test_life_of_a_job,
)
from tests.local.odh import MARK as RUN_MARK
from tests.local.odh import until
from tests.rest import Rest, served

__all__ = [
    "test_failure_is_told_at_once_with_rank_and_reason",
    "test_life_of_a_job",
]

pytestmark = pytest.mark.timeout(240)
COOKIE = "odh-session"
JOBS = "/api/v1/namespaces/default/mpijobs"
Object = dict[str, Any]


@pytest.fixture(scope="module")
def loopback() -> Loopback:
    return Loopback(LocalBackend(), COOKIE)


@pytest.fixture(scope="module")
def port(loopback: Loopback) -> Iterator[int]:
    with served(loopback, Settings(rate=Rate(10_000, 10_000))) as number:
        yield number


@pytest.fixture(autouse=True)
def server(
    port: int, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rest]:
    """The server, and a place for jobs that nobody else uses. SDK programs of this test go by
    HTTP."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(RUN_MARK, tmp_path.name)
    asked = Rest(port, loopback.token)
    for module in (handle, mpijob, clients):
        monkeypatch.setattr(module, "connect", lambda: rest.backend(asked))
    yield asked
    for folder in store.folders():
        store.remove(folder)


def manifest(name: str) -> Object:
    """A job that waits, with a label."""
    policy = RunPolicy(suspend=True)
    made = NewJob(name, ("echo", name), workers=3, slots=2, image="x", run_policy=policy)
    wire = to_wire(made.mpijob())
    wire["metadata"] = {"name": name, "labels": {"team": name[0]}}
    return wire


def created(server: Rest, name: str) -> Object:
    reply = server.ask("POST", JOBS, manifest(name))
    assert reply.status == 201, reply
    made: Object = reply.data
    return made


def problem(server: Rest, status: int, *asked: Any, **more: Any) -> Object:
    reply = server.ask(*asked, **more)
    assert reply.status == status, reply
    assert reply.headers["Content-Type"].startswith("application/problem+json")
    found: Object = reply.data
    assert found["status"] == status and found["detail"]
    return found


def test_a_job_is_created_read_and_deleted(server: Rest) -> None:
    made = created(server, "one")
    assert (made["kind"], made["namespace"], made["workers"], made["slots"]) == (
        ("MPIJob", "default", 3, 2)
    )
    assert made["manifest"]["spec"]["slotsPerWorker"] == 2
    assert server.get(f"{JOBS}/one")["uid"] == made["uid"]
    assert server.get("/api/mpijobs/one")["uid"] == made["uid"]
    assert server.get("/api/mpijobs/one/status?namespace=default")["workers"]["wanted"] == 3
    assert server.get(f"{JOBS}/one/explain") == {"items": []}
    assert server.get(f"{JOBS}/one/metrics")["notes"] == ["no pod of default/one runs"]
    assert [*server.get(f"{JOBS}/one/events")] == ["items"]
    exists = problem(server, 409, "POST", JOBS, manifest("one"))
    assert exists["detail"] == "job default/one already exists" and "odh mpijob" in exists["hint"]
    assert server.ask("DELETE", f"{JOBS}/one").status == 204
    gone = problem(server, 404, "GET", f"{JOBS}/one")
    assert gone["detail"] == "job default/one not found on this machine"


def test_a_job_comes_as_yaml_and_by_the_short_path(server: Rest) -> None:
    text = yaml.safe_dump(manifest("one")).encode()
    as_yaml = {"Content-Type": "application/yaml"}
    assert server.ask("POST", "/api/mpijobs?namespace=team", text, as_yaml).status == 201
    assert server.get("/api/mpijobs?namespace=team")["items"][0]["name"] == "one"
    assert server.get("/api/mpijobs?namespace=other")["items"] == []
    assert [one["namespace"] for one in server.get("/api/mpijobs")["items"]] == ["team"]
    assert server.get("/api/v1/namespaces")["items"] == ["default", "team"]


def test_a_list_is_filtered_sorted_and_paged(server: Rest) -> None:
    for name in ("b1", "a1", "a2"):
        created(server, name)
    train = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "train"},
        "spec": {
            "runtimeRef": {"name": "mpi-openmpi-cpu"},
            "suspend": True,
            "trainer": {"command": ["true"]},
        },
    }
    assert server.ask("POST", "/api/v1/namespaces/default/trainjobs", train).status == 201

    def names(path: str) -> list[str]:
        return [one["name"] for one in server.get(path)["items"]]

    assert names(JOBS) == ["a2", "a1", "b1"]
    assert names(f"{JOBS}?sortBy=name") == ["a1", "a2", "b1"]
    assert names(f"{JOBS}?labelSelector=team%3Da&order=asc") == ["a1", "a2"]
    assert names(f"{JOBS}?state=Running") == []
    assert names("/api/v1/namespaces/default/trainjobs") == ["train"]
    assert names("/api/v1/jobs?name=1") == ["a1", "b1"]
    first = server.get("/api/v1/jobs?limit=3")
    assert (len(first["items"]), first["total"]) == (3, 4)
    rest = server.get(f"/api/v1/jobs?limit=3&continue={first['continue']}")
    assert [one["name"] for one in rest["items"]] == ["b1"] and rest["continue"] == ""
    problem(server, 404, "GET", f"{JOBS}/train")
    bad = problem(server, 400, "GET", f"{JOBS}?labelSelector=%3D%3D")
    assert bad["errors"][0]["field"] == "labelSelector"


def test_a_job_that_has_changed_is_not_changed_by_whoever_has_not_seen_it(server: Rest) -> None:
    """ETag and If-Match."""
    created(server, "one")
    reply = server.ask("GET", f"{JOBS}/one")
    tag = reply.headers["ETag"]
    assert server.ask("GET", f"{JOBS}/one", headers={"If-None-Match": tag}).status == 304
    assert server.ask("POST", f"{JOBS}/one/resume", headers={"If-Match": tag}).status == 200
    for method, path in (("POST", "/suspend"), ("POST", "/restart"), ("DELETE", "")):
        late = problem(server, 412, method, f"{JOBS}/one{path}", headers={"If-Match": tag})
        assert late["detail"] == "job default/one has changed since you read it"
    assert server.ask("POST", f"{JOBS}/one/suspend", headers={"If-Match": "*"}).status == 200


def test_a_copy_has_the_changes_that_were_asked_for(server: Rest) -> None:
    created(server, "one")
    reply = server.ask(
        "POST", f"{JOBS}/one/clone", {"name": "two", "workers": 1, "env": {"A": "b"}}
    )
    assert reply.status == 201, reply
    assert (reply.data["name"], reply.data["workers"], reply.data["slots"]) == ("two", 1, 2)
    problem(server, 409, "POST", f"{JOBS}/one/clone", {"name": "one"})
    bad = problem(server, 400, "POST", f"{JOBS}/one/clone", {"name": "../x"})
    assert bad["errors"][0]["field"] == "name"
    problem(server, 422, "POST", f"{JOBS}/one/clone", {"name": "three", "workers": "many"})


def test_logs_are_text_or_data_and_bounded(server: Rest) -> None:
    script = "seq -f 'line %g' 0 30; yes | head -c 40000 | tr -d '\\n'; echo"
    made = NewJob("one", ("sh", "-c", script), workers=1, slots=1).mpijob()
    assert server.ask("POST", JOBS, to_wire(made)).status == 201
    rest_job = clients.MPIJobClient()
    assert rest_job.wait("one", timeout=120).succeeded
    text = server.ask("GET", "/api/mpijobs/one/logs?contains=line+2")
    assert text.headers["Content-Type"].startswith("text/plain")
    assert "[0] line 2\n" in text.body.decode() and "line 1\n" not in text.body.decode()
    found = server.get(f"{JOBS}/one/logs?rank=0&tail=2", Accept="application/json")
    assert len(found["items"]) == 2 and {one["rank"] for one in found["items"]} == {0}
    assert found["cut"] and max(len(one["text"]) for one in found["items"]) <= 16 * 1024 + 1
    of_worker = server.get(f"{JOBS}/one/logs/worker/0", Accept="application/json")["items"]
    assert {one["pod"] for one in of_worker} <= {"one-worker-0"}
    assert server.ask("GET", f"{JOBS}/one/logs/launcher?contains=(.*a)*b").body == b""


def test_what_a_file_would_do_is_told_before(server: Rest) -> None:
    plan = "/api/v1/namespaces/team/plan"
    made = server.ask("POST", f"{plan}/render", manifest("one")).data
    kinds = [one["kind"] for one in made["items"]]
    assert "Job" in kinds and kinds.count("Pod") == 3
    assert {one["metadata"]["namespace"] for one in made["items"]} == {"team"}
    assert server.ask("POST", f"{plan}/dry-run", manifest("one")).data["accepted"]
    train = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "two"},
        "spec": {"runtimeRef": {"name": "none-such"}},
    }
    refused = server.ask("POST", f"{plan}/dry-run", train).data
    assert not refused["accepted"] and "none-such not found" in refused["refusals"][0]
    train["spec"] = {"runtimeRef": {"name": "mpi-openmpi-cpu"}}
    made = server.ask("POST", f"{plan}/render", train).data
    assert "JobSet" in [one["kind"] for one in made["items"]]
    problem(server, 409, "POST", f"{plan}/diff", manifest("one"))
    assert server.get("/api/v1/jobs")["items"] == [], "nothing was made"


def test_runtimes_and_queues_can_be_chosen_from(server: Rest) -> None:
    found = server.get("/api/v1/namespaces/default/runtimes")["items"]
    assert "mpi-openmpi-cpu" in [one["name"] for one in found]
    one = server.get("/api/v1/namespaces/default/runtimes/mpi-openmpi-cpu")
    assert (one["framework"], one["kind"]) == ("mpi", "ClusterTrainingRuntime")
    assert server.get("/api/v1/namespaces/default/queues") == {"items": []}
    problem(server, 404, "GET", "/api/v1/namespaces/default/runtimes/none-such")


BAD = [
    (413, "POST", JOBS, b"x" * 10_000_000, {}),
    (400, "POST", JOBS, b'{"kind": "\xff"}', {}),
    (400, "POST", JOBS, b"{", {}),
    (422, "POST", JOBS, b"{}", {}),
    (422, "POST", JOBS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, {}),
    (415, "POST", JOBS, b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}),
    (400, "GET", "/api/v1/namespaces/%2e%2e%2fsecrets/mpijobs", None, {}),
    (400, "GET", f"{JOBS}/%2e%2e%2f%2e%2e", None, {}),
    (400, "GET", f"{JOBS}/a%0d%0aX-Evil:%201", None, {}),
    (400, "GET", "/api/mpijobs?namespace=../x", None, {}),
    (400, "GET", f"{JOBS}/x/logs/worker/-1", None, {}),
    (400, "GET", f"{JOBS}?continue=nonsense", None, {}),
    (404, "GET", "/api/v2/jobs", None, {}),
    (405, "PUT", f"{JOBS}/x", b"{}", {}),
    (403, "GET", JOBS, None, {"Origin": "https://evil.example"}),
    (401, "GET", JOBS, None, {"Authorization": "Bearer wrong"}),
    (401, "GET", JOBS, None, {"Authorization": "", "X-Forwarded-Access-Token": "x"}),
]


@pytest.mark.parametrize(
    ("status", "method", "path", "body", "headers"), BAD, ids=[f"{b[1]} {b[2]} {b[0]}" for b in BAD]
)
def test_bad_input_is_a_problem_and_nothing_else(
    server: Rest, status: int, method: str, path: str, body: Any, headers: Object
) -> None:
    try:
        found = problem(server, status, method, path, body, headers=headers)
    except (BrokenPipeError, ConnectionResetError):
        assert status == 413, "a body that is not read to its end may break the connection"
        return
    assert found["hint"] or found["errors"]


def test_every_answer_has_strict_headers_and_no_version_of_the_server(server: Rest) -> None:
    for path in ("/api/v1", "/api/v1/none", JOBS, "/api/openapi.json", "/healthz"):
        headers = server.ask("GET", path).headers
        assert {name: headers.get(name) for name in HEADERS} == HEADERS


def test_the_address_opens_the_server_for_a_browser(server: Rest, loopback: Loopback) -> None:
    browser = Rest(server.port)
    assert browser.ask("GET", "/?token=wrong").status == 401
    opened = browser.ask("GET", f"/?token={loopback.token}")
    cookie = opened.headers["Set-Cookie"]
    assert (opened.status, opened.headers["Location"]) == (303, "/")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and loopback.token not in cookie
    login = {"Cookie": cookie.partition(";")[0]}
    assert browser.ask("GET", JOBS, headers=login).status == 200
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    forged = problem(browser, 403, "POST", JOBS, manifest("x"), headers=login | own)
    assert MARK in forged["detail"]
    whole = login | own | {MARK: "odh"}
    assert browser.ask("POST", JOBS, manifest("x"), whole).status == 201


def test_a_name_that_others_control_does_not_reach_the_server(loopback: Loopback) -> None:
    """DNS rebinding."""
    hosts = frozenset({"127.0.0.1:1", "localhost:1"})
    with served(loopback, Settings(hosts=hosts)) as port:
        asked = Rest(port, loopback.token)
        problem(asked, 421, "GET", JOBS, headers={"Host": "evil.example"})
        assert asked.ask("GET", JOBS, headers={"Host": "localhost:1"}).status == 200


def test_calls_are_limited_in_rate_and_number(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(loopback, Settings(rate=Rate(2, 0.01))) as port:
        asked = Rest(port, loopback.token)
        assert [asked.ask("GET", "/api/v1").status for _ in range(3)] == [200, 200, 429]
        assert int(asked.ask("GET", "/api/v1").headers["Retry-After"]) > 1
    with served(loopback, Settings(at_once=0)) as port:
        problem(Rest(port, loopback.token), 503, "GET", "/api/v1")
    monkeypatch.setattr(calls, "EACH", 2)
    with served(loopback) as port, ExitStack() as left:
        for _ in range(2):
            slow = socket.create_connection(("127.0.0.1", port))
            left.callback(slow.close)
            slow.sendall(
                f"POST {JOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Type:"
                f" application/json\r\nAuthorization: Bearer {loopback.token}\r\n\r\n".encode()
            )
        asked = Rest(port, loopback.token)
        until("both wait for their body", lambda: asked.ask("GET", "/api/v1").status == 429)
        found = problem(asked, 429, "GET", "/api/v1")
        assert found["detail"] == "you have 2 calls under way already"


def test_every_change_leaves_a_line_and_no_token_gets_into_a_log(
    server: Rest, loopback: Loopback
) -> None:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger()
    logger.addHandler(handler)
    logging.getLogger("mpi_trainer").setLevel("INFO")
    try:
        created(server, "one")
        server.ask("POST", f"{JOBS}/none/suspend")
        server.ask("DELETE", "/api/mpijobs/one?namespace=default")
        server.get(f"{JOBS}?name=x")
        server.ask("POST", JOBS, manifest("x"), {"Authorization": "Bearer other-secret"})
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(
                f"GET / HTTP/1.1\r\nAuthorization: Bearer {loopback.token}\0\r\n\r\n".encode()
            )
            assert b" 400 " in raw.recv(1000)
    finally:
        logger.removeHandler(handler)
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    noted = [line for line in lines if line["logger"] == "mpi_trainer.server.audit"]
    assert [(n["action"], n["job"], n["status"]) for n in noted] == [
        ("createMPIJob", "", 201),
        ("suspendMPIJob", "none", 404),
        ("deleteMPIJob", "one", 204),
    ]
    assert {(n["user"], n["namespace"], n["kind"]) for n in noted} == {
        (noted[0]["user"], "default", "MPIJob")
    }
    assert noted[0]["user"]
    assert loopback.token not in text.getvalue() and "other-secret" not in text.getvalue()


def test_the_token_is_not_in_the_browsers_command_line(tmp_path: Path) -> None:
    """Every user of the machine can read that; the page that has it is this user's alone."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\ncat "${{1#file://}}" > {seen}.page\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": str(browser), "XDG_STATE_HOME": str(tmp_path)}
    words = [str(INSTALLED), "--backend", "local", "dashboard"]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            address = program.stdout.readline().strip()
            until("the browser is opened", seen.exists)
            folder = Path(seen.read_text().strip().removeprefix("file://")).parent
            assert address.partition("token=")[2] not in seen.read_text()
            assert address in Path(f"{seen}.page").read_text()
            assert folder.stat().st_mode & 0o077 == 0
        finally:
            program.send_signal(signal.SIGINT)
    assert program.returncode == 0 and not folder.exists()


def test_a_request_that_is_no_http_leaves_its_lines_in_no_log(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    token = b"Authorization: Bearer secret-of-mine"
    for line in (token + b"\0", token + b"x" * 20_000, b"no colon, secret-of-mine"):
        with socket.create_connection(("127.0.0.1", port), 10) as raw:
            raw.sendall(b"GET /api/v1 HTTP/1.1\r\nHost: a\r\n" + line + b"\r\n\r\n")
            assert raw.recv(4096).startswith(b"HTTP/1.0 400 ")
    assert "secret-of-mine" not in caplog.text
