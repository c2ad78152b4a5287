"""The REST API before a real API server, with real tokens of several users (SC-009).

The server has a login that may do everything, and must not use it: whatever a caller gets, they get
by their own token.
"""

from __future__ import annotations

import io
import json
import logging
import socket
import subprocess
import sys
import tarfile
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.annotations import CODE, USER
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.kube.config import load
from mpi_trainer.runtime.logs import JsonFormatter
from mpi_trainer.server.callers import FORWARDED, PassedOn
from mpi_trainer.server.forgery import MARK
from tests.api.accounts import Account, account
from tests.api.admin import JOBS, Admin
from tests.api.clients.test_sdk_roles import ROLES
from tests.api.lab import admin, served
from tests.api.running import free_port, job
from tests.cluster import Kubectl, eventually
from tests.rest import Form, Rest
from tests.rest import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "served"]

Object = dict[str, Any]


class Team(msgspec.Struct, frozen=True):
    """A namespace with one job, and who works in it."""

    admin: Admin
    user: Account
    viewer: Account

    @property
    def jobs(self) -> str:
        return f"/api/v1/namespaces/{self.admin.namespace}/mpijobs"


def team(admin: Admin, spec: Spec, name: str) -> Team:
    kubectl = Kubectl(spec, admin.namespace)
    admin.create(f"{JOBS}/mpijobs", job(name=name))
    user = account(kubectl, "user", "mpijob-user")
    return Team(admin, user, account(kubectl, "viewer", "mpijob-viewer"))


@pytest.fixture
def ours(admin: Admin, served: Spec) -> Team:
    Kubectl(served)("apply", "-k", str(ROLES))
    return team(admin, served, "ours")


other = admin
"""the same fixture again, for a second namespace"""


@pytest.fixture
def theirs(other: Admin, served: Spec, ours: Team) -> Team:
    return team(other, served, "theirs")


@pytest.fixture(scope="module")
def port(served: Spec) -> Iterator[int]:
    """A server whose own login is the administrator's."""
    callers = PassedOn(load(served.kubeconfig), forwarded=True)
    with serving(callers) as number:
        yield number


def manifest(name: str) -> Object:
    made: Object = job(name=name)
    made["metadata"] = {"name": name}
    return made


def test_a_user_does_with_jobs_what_their_role_allows(port: int, ours: Team) -> None:
    user, viewer = Rest(port, ours.user.token), Rest(port, ours.viewer.token)
    about = user.get("/api/v1")
    assert about["user"] == f"system:serviceaccount:{ours.admin.namespace}:user"
    made = user.ask("POST", ours.jobs, manifest("new"))
    assert made.status == 201, made
    for who in (user, viewer):
        assert [one["name"] for one in who.get(f"{ours.jobs}?sortBy=name")["items"]] == [
            "new",
            "ours",
        ]
        assert who.get(f"{ours.jobs}/new")["uid"] == made.data["uid"]
        assert who.get(f"{ours.jobs}/new/status")["name"] == "new"
        assert who.ask("GET", f"{ours.jobs}/new/events").status == 200
    for method, path in (
        ("POST", ""),
        ("POST", "/new/suspend"),
        ("POST", "/new/clone"),
        ("DELETE", "/new"),
    ):
        body = {"": manifest("more"), "/new/clone": {"name": "more"}}.get(path)
        refused = viewer.ask(method, f"{ours.jobs}{path}", body)
        assert refused.status == 403, refused
        assert refused.data["detail"].startswith(f"forbidden: you ({about['user'][:-4]}viewer) may")
        assert "Ask an administrator for the right" in refused.data["hint"]
    assert user.ask("POST", f"{ours.jobs}/new/suspend").data["suspend"] is True
    assert user.ask("POST", f"{ours.jobs}/new/clone", {"name": "more"}).status == 201
    assert user.ask("DELETE", f"{ours.jobs}/new").status == 204
    assert user.ask("GET", f"{ours.jobs}/new").status == 404
    exists = user.ask("POST", ours.jobs, manifest("ours"))
    assert exists.status == 409 and "already exists" in exists.data["detail"]


def test_for_a_made_up_token_nothing_is_read_or_kept(port: int, ours: Team) -> None:
    """Whoever waits for a body, or for the end of a form, holds room that others need."""
    plan = f"/api/v1/namespaces/{ours.admin.namespace}/plan/render"
    for number in range(20):
        stranger = Rest(port, f"made-up-{number}")
        for path in (plan, ours.jobs):
            assert stranger.ask("POST", path, manifest("new")).status == 401
    with ExitStack() as left:
        for number in range(6):
            slow = socket.create_connection(("127.0.0.1", port))
            left.callback(slow.close)
            slow.sendall(
                f"POST {ours.jobs} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
                f"Authorization: Bearer made-up-{number}\r\n"
                f"Content-Type: {Form.MEDIA_TYPE}\r\n\r\n".encode()
            )
            slow.settimeout(20)
            assert slow.recv(100).startswith(b"HTTP/1.1 401 ")
        user = Rest(port, ours.user.token)
        form = Form().job(manifest("new")).files({"train.py": b"print()"})
        assert user.send(ours.jobs, form).status == 201


def test_a_namespace_of_others_is_closed(port: int, ours: Team, theirs: Team) -> None:
    """Nothing of it is told, not even what is there."""
    user = Rest(port, ours.user.token)
    short = f"/api/mpijobs/theirs?namespace={theirs.admin.namespace}"
    everywhere = ("/api/v1/jobs", "/api/v1/mpijobs", "/api/mpijobs")
    single = (f"{theirs.jobs}/theirs", f"{theirs.jobs}/none", short)
    more = tuple(f"{theirs.jobs}/theirs/{rest}" for rest in ("status", "events", "logs", "metrics"))
    for path in (theirs.jobs, *everywhere, *single, *more):
        reply = user.ask("GET", path)
        assert reply.status == 403, (path, reply)
        assert b"uid" not in reply.body
    assert user.ask("POST", theirs.jobs, manifest("new")).status == 403
    assert user.ask("DELETE", f"{theirs.jobs}/theirs").status == 403
    assert Rest(port, theirs.user.token).get(f"{theirs.jobs}/theirs")["name"] == "theirs"


def test_a_page_of_somebody_elses_read_is_no_page(port: int, ours: Team, theirs: Team) -> None:
    theirs.admin.create(f"{JOBS}/mpijobs", job(name="second"))
    owner = Rest(port, theirs.user.token)
    first = owner.get(f"{theirs.jobs}?sortBy=name&limit=1")
    following = f"{theirs.jobs}?sortBy=name&limit=1&continue={first['continue']}"
    assert [one["name"] for one in owner.get(following)["items"]] == ["theirs"]
    refused = Rest(port, ours.user.token).ask("GET", following)
    assert refused.status == 403 and b"uid" not in refused.body


def test_a_list_of_all_kinds_says_what_a_table_needs(port: int, ours: Team, theirs: Team) -> None:
    """As it is stored: GPUs of all pods, queue, creator; and of no other namespace."""
    one = manifest("gpus")
    one["metadata"] |= {"labels": {LABEL_QUEUE: "fast"}, "annotations": {USER: "ann"}}
    replicas = one["spec"]["mpiReplicaSpecs"]
    replicas["Worker"]["replicas"] = 3
    for container in replicas["Worker"]["template"]["spec"]["containers"]:
        container["resources"] = {"limits": {"nvidia.com/gpu": "2"}}
    ours.admin.create(f"{JOBS}/mpijobs", one)
    user = Rest(port, ours.user.token)
    path = f"/api/v1/namespaces/{ours.admin.namespace}/jobs"
    found = user.get(f"{path}?sortBy=gpus&order=desc")
    stored = ours.admin.job("gpus")
    first = found["items"][0]
    assert (first["name"], first["gpus"], first["queue"], first["owner"]) == (
        ("gpus", 6, "fast", "ann")
    )
    assert first["resourceVersion"] == stored["metadata"]["resourceVersion"]
    assert first["uid"] == stored["metadata"]["uid"] and not first["readOnly"]
    assert found["facets"]["namespace"] == {ours.admin.namespace: 2}
    assert [one["name"] for one in user.get(f"{path}?queue=fast")["items"]] == ["gpus"]
    assert theirs.admin.namespace not in json.dumps(found)


def test_without_a_token_that_the_cluster_knows_there_is_nothing(port: int, ours: Team) -> None:
    assert Rest(port).ask("GET", ours.jobs).status == 401
    unknown = Rest(port, "made.up.token").ask("GET", ours.jobs)
    assert unknown.status == 401 and "does not accept your login" in unknown.data["detail"]
    assert Rest(port, "made.up.token").ask("POST", ours.jobs, manifest("new")).status == 401


def test_a_forwarded_token_is_the_callers_and_a_change_with_it_is_protected(
    port: int, ours: Team
) -> None:
    proxy = Rest(port)
    login = {FORWARDED: ours.user.token}
    assert proxy.ask("GET", f"{ours.jobs}/ours", headers=login).data["name"] == "ours"
    forged = proxy.ask("POST", f"{ours.jobs}/ours/suspend", headers=login)
    assert forged.status == 403 and MARK in forged.data["detail"]
    own = login | {"Origin": f"http://127.0.0.1:{port}", MARK: "odh"}
    assert proxy.ask("POST", f"{ours.jobs}/ours/suspend", headers=own).status == 200
    spoofed = {"X-Forwarded-User": "admin", "Impersonate-User": "admin", "X-Remote-User": "admin"}
    assert proxy.ask("GET", ours.jobs, headers=spoofed).status == 401


def test_interleaved_callers_get_their_own_answers(port: int, ours: Team, theirs: Team) -> None:
    """0 foreign objects."""

    def ask(number: int) -> list[str]:
        one = (ours, theirs)[number % 2]
        reply = Rest(port, one.user.token).ask("GET", one.jobs)
        assert reply.status == 200, reply
        return [item["namespace"] for item in reply.data["items"]]

    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(ask, range(100))]
    for number, found in enumerate(answers):
        assert found == [(ours, theirs)[number % 2].admin.namespace]


def test_a_job_that_the_cluster_has_changed_is_left_as_it_is(port: int, ours: Team) -> None:
    """If-Match becomes a precondition on the API server."""
    user = Rest(port, ours.user.token)
    tag = user.ask("GET", f"{ours.jobs}/ours").headers["ETag"]
    ours.admin.patch(f"{JOBS}/mpijobs/ours", {"metadata": {"labels": {"a": "b"}}})
    for method, path in (("POST", "/suspend"), ("POST", "/restart"), ("DELETE", "")):
        late = user.ask(method, f"{ours.jobs}/ours{path}", headers={"If-Match": tag})
        assert late.status == 412, late
    tag = user.ask("GET", f"{ours.jobs}/ours").headers["ETag"]
    assert user.ask("POST", f"{ours.jobs}/ours/suspend", headers={"If-Match": tag}).status == 200


def test_what_a_file_would_do_is_asked_of_the_cluster(port: int, ours: Team) -> None:
    user, viewer = Rest(port, ours.user.token), Rest(port, ours.viewer.token)
    plan = f"/api/v1/namespaces/{ours.admin.namespace}/plan"
    assert user.ask("POST", f"{plan}/dry-run", manifest("new")).data["accepted"]
    refused = viewer.ask("POST", f"{plan}/dry-run", manifest("new")).data
    assert not refused["accepted"] and "cannot create" in refused["refusals"][0]
    found = user.ask("POST", f"{plan}/diff", manifest("new")).data["items"]
    assert {"kind": "mpijob", "name": "new", "state": "would be created", "changes": []} in found
    assert user.ask("GET", f"{ours.jobs}/new").status == 404


def test_code_is_sent_with_the_callers_rights(port: int, ours: Team) -> None:
    user, viewer = Rest(port, ours.user.token), Rest(port, ours.viewer.token)
    form = Form().job(manifest("sent")).files({"src/train.py": b"print(1)\n"})
    assert viewer.send(ours.jobs, form).status == 403
    made = user.send(ours.jobs, form)
    assert made.status == 201, made
    name = made.data["manifest"]["metadata"]["annotations"][CODE]
    stored = ours.admin.get(f"api/v1/configmaps/{name}")
    assert stored is not None
    (owner,) = stored["metadata"]["ownerReferences"]
    assert owner["uid"] == made.data["uid"] and stored["immutable"]
    with tarfile.open(fileobj=io.BytesIO(b64decode(stored["binaryData"]["code.tar.gz"]))) as code:
        assert code.getnames() == ["src/train.py"]


def test_an_audit_line_has_the_callers_name_as_the_cluster_knows_it(port: int, ours: Team) -> None:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("mpi_trainer.server.audit")
    logger.addHandler(handler)
    logger.setLevel("INFO")
    try:
        Rest(port, ours.viewer.token).ask("DELETE", f"{ours.jobs}/ours")
    finally:
        logger.removeHandler(handler)
    (line,) = (json.loads(each) for each in text.getvalue().splitlines())
    assert line["user"] == f"system:serviceaccount:{ours.admin.namespace}:viewer"
    assert (line["action"], line["job"], line["status"]) == ("deleteMPIJob", "ours", 403)
    assert ours.viewer.token not in text.getvalue()


def test_the_server_runs_as_a_process_of_its_own(served: Spec, ours: Team, tmp_path: Path) -> None:
    """As docs/server.md has it."""
    port = free_port()
    options = ("--kubeconfig", str(served.kubeconfig), "--port", str(port))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mpi_trainer.server", *options], stderr=log
        )
    try:
        user = Rest(port, ours.user.token)
        eventually("the API is served", lambda: _answers(user))
        assert [one["name"] for one in user.get(ours.jobs)["items"]] == ["ours"]
        assert Rest(port).ask("GET", ours.jobs).status == 401
        forwarded = {FORWARDED: ours.user.token}
        assert Rest(port).ask("GET", ours.jobs, headers=forwarded).status == 401
        assert user.ask("POST", f"{ours.jobs}/ours/suspend").status == 200
    finally:
        process.terminate()
        assert process.wait(30) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["action"] for line in lines if line["msg"] == "audit"] == ["suspendMPIJob"]


def _answers(server: Rest) -> bool:
    try:
        return server.ask("GET", "/healthz").status == 200
    except ConnectionRefusedError:
        return False
