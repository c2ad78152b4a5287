"""Our client and a real API server understand each other."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.kube import exec as kube_exec
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.config import Config, load
from mpi_trainer.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthorized,
    Unreachable,
)
from mpi_trainer.kube.lists import list_all, pages
from mpi_trainer.kube.requests import LogOptions
from mpi_trainer.kube.resources import (
    CONFIGMAPS,
    JOBS,
    PODS,
    SECRETS,
    SELF_SUBJECT_ACCESS_REVIEWS,
)
from mpi_trainer.kube.watch import Added, Bookmark, Deleted, Modified, watch
from tests.cluster import Kubectl, eventually
from tools.cluster.report import environment

Object = dict[str, Any]


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str
    labels: dict[str, str] = {}


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta
    data: dict[str, str] = {}


def thing(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels or {}},
        "data": data,
    }


def pod(name: str) -> Object:
    own = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "c", "image": "x", "securityContext": own}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def play(config: Config, script: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Client(config) as client, asyncio.timeout(110):
            await script(client)

    asyncio.run(run())


@pytest.fixture
def admin(namespace: Kubectl) -> Config:
    return load(namespace.spec.kubeconfig, namespace=namespace.namespace)


@pytest.fixture
def token(namespace: Kubectl) -> str:
    """A real token of an account without any rights of its own."""
    eventually("default account", lambda: not namespace.attempt("get", "sa", "default").returncode)
    return namespace("create", "token", "default").strip()


def as_user(config: Config, folder: Path, user: Object) -> Config:
    """The same server for another user, by way of a file."""
    cluster = {"server": config.server, "certificate-authority": "ca.crt"}
    (folder / "ca.crt").write_bytes(config.trust.authority)
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(document))
    return load(path, namespace=config.namespace)


async def whoami(client: Client) -> str:
    """The user's name, from the words with which everybody but an administrator is refused."""
    with pytest.raises(Forbidden) as caught:
        await client.call(requests.list_page(SECRETS))
    name = re.search('User "([^"]*)"', caught.value.message)
    assert name
    return name[1]


def test_an_objects_life(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        made = await client.call(requests.create(CONFIGMAPS, ns, thing("a", k="1")), Thing)
        assert made.data == {"k": "1"}
        with pytest.raises(AlreadyExists) as taken:
            await client.call(requests.create(CONFIGMAPS, ns, thing("a")))
        assert taken.value.details["name"] == "a"
        read = await client.call(requests.get(CONFIGMAPS, ns, "a"))
        changed = await client.call(requests.replace(CONFIGMAPS, ns, "a", read | {"data": {}}))
        with pytest.raises(Conflict, match="read it again"):
            await client.call(requests.replace(CONFIGMAPS, ns, "a", read))
        with pytest.raises(Conflict):
            await client.call(requests.delete(CONFIGMAPS, ns, "a", uid="another"))
        with pytest.raises(Conflict):
            old = made.metadata.resource_version
            await client.call(requests.delete(CONFIGMAPS, ns, "a", resource_version=old))
        uid, version = changed["metadata"]["uid"], changed["metadata"]["resourceVersion"]
        await client.call(requests.delete(CONFIGMAPS, ns, "a", uid, version), None)
        with pytest.raises(NotFound) as gone:
            await client.call(requests.get(CONFIGMAPS, ns, "a"))
        assert gone.value.details == {"name": "a", "kind": "configmaps"}

    play(admin, script)


def test_a_brief_answer_holds_the_metadata_and_no_content(admin: Config) -> None:
    """What was written is confirmed without sending it back: it may be a key."""
    ns = admin.namespace

    async def script(client: Client) -> None:
        made = await client.call(
            requests.brief(requests.create(CONFIGMAPS, ns, thing("brief", k="1")))
        )
        read = await client.call(requests.brief(requests.get(CONFIGMAPS, ns, "brief")))
        body = {"data": {"k": "2"}}
        changed = await client.call(
            requests.brief(requests.patch(CONFIGMAPS, ns, "brief", body, "merge"))
        )
        assert read == made
        for answer in (made, changed):
            assert answer["kind"] == "PartialObjectMetadata"
            assert answer["metadata"]["uid"] == made["metadata"]["uid"]
            assert "data" not in answer
        whole = await client.call(requests.get(CONFIGMAPS, ns, "brief"))
        assert whole["data"] == {"k": "2"}
        assert whole["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]

    play(admin, script)


def test_all_kinds_of_patch(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        await client.call(requests.create(PODS, ns, pod("p")), None)
        merge = {"metadata": {"labels": {"a": "1"}}}
        patch = requests.patch
        await client.call(patch(PODS, ns, "p", merge, "merge"))
        steps = [{"op": "add", "path": "/metadata/labels/b", "value": "2"}]
        await client.call(patch(PODS, ns, "p", steps, "json"))
        tolerations = {"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}
        new = await client.call(patch(PODS, ns, "p", tolerations, "strategic"))
        assert new["metadata"]["labels"] == {"a": "1", "b": "2"}
        assert {"key": "k", "operator": "Exists"} in new["spec"]["tolerations"]
        status = {"status": {"phase": "Running", "podIP": "10.0.0.9"}}
        new = await client.call(patch(PODS, ns, "p", status, "merge", sub="status"))
        assert new["status"]["phase"] == "Running"
        guard = [{"op": "test", "path": "/metadata/labels/a", "value": "other"}]
        with pytest.raises(Invalid):
            await client.call(patch(PODS, ns, "p", guard, "json"))

    play(admin, script)


def test_applied_fields_belong_to_their_manager(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        def applied(value: str, manager: str, force: bool) -> requests.Request:
            return requests.apply(CONFIGMAPS, ns, "a", thing("a", k=value), manager, force)

        await client.call(applied("1", "one", True))
        with pytest.raises(Conflict) as caught:
            await client.call(applied("2", "two", False))
        assert caught.value.has_cause("FieldManagerConflict")
        assert (await client.call(applied("2", "two", True), Thing)).data == {"k": "2"}

    play(admin, script)


def test_an_invalid_object_is_refused_field_by_field(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {}}
        with pytest.raises(Invalid) as caught:
            await client.call(requests.create(JOBS, ns, job))
        fields = {cause["field"] for cause in caught.value.details["causes"]}
        assert "spec.template.spec.containers" in fields

    play(admin, script)


def test_a_dry_run_leaves_nothing(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        await client.call(requests.create(CONFIGMAPS, ns, thing("a"), dry_run=True))
        with pytest.raises(NotFound):
            await client.call(requests.get(CONFIGMAPS, ns, "a"))

    play(admin, script)


def test_a_long_list_comes_in_pages_of_one_moment(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        names = [f"c{number:03}" for number in range(70)]
        made = [requests.create(CONFIGMAPS, ns, thing(n, {"x": "y"}, k="v" * 9000)) for n in names]
        await asyncio.gather(*(client.call(one, None) for one in made))
        seen = [
            page
            async for page in pages(client, CONFIGMAPS, Thing, namespace=ns, labels="x=y", limit=30)
        ]
        assert [len(page.items) for page in seen] == [30, 30, 10]
        assert [one.metadata.name for page in seen for one in page.items] == names
        assert len({page.resource_version for page in seen}) == 1
        found = await list_all(client, CONFIGMAPS, Thing, namespace=ns, fields="metadata.name=c007")
        assert [one.metadata.name for one in found.items] == ["c007"]

    play(admin, script)


def test_a_watch_tells_all_that_happens_to_its_selection(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        start = (await list_all(client, CONFIGMAPS, Thing, namespace=ns)).resource_version
        big = "x" * 900_000
        await client.call(requests.create(CONFIGMAPS, ns, thing("a", {"x": "y"}, k=big)), None)
        await client.call(requests.create(CONFIGMAPS, ns, thing("other")), None)
        leave = {"metadata": {"labels": {"x": None}}}
        come = {"metadata": {"labels": {"x": "y"}}, "data": None}
        for change in (leave, come):
            await client.call(requests.patch(CONFIGMAPS, ns, "a", change, "merge"), None)
        await client.call(requests.patch(CONFIGMAPS, ns, "a", {"data": {"k": "2"}}, "merge"), None)
        await client.call(requests.delete(CONFIGMAPS, ns, "a"), None)
        request = requests.watch(CONFIGMAPS, ns, "x=y", resource_version=start, seconds=4)
        began = time.monotonic()
        events = [event async for event in watch(client, request, Thing)]
        assert 3 < time.monotonic() - began < 30
        changes = [one for one in events if not isinstance(one, Bookmark)]
        assert [type(one) for one in changes] == [Added, Deleted, Added, Modified, Deleted]
        assert isinstance(changes[0], Added)
        assert len(changes[0].object.data["k"]) == len(big)

    play(admin, script)


def test_a_silent_watch_gets_bookmarks(admin: Config) -> None:
    """They are what tells a quiet connection from a dead one."""

    async def script(client: Client) -> None:
        request = requests.watch(CONFIGMAPS, admin.namespace, "none=such", resource_version="0")
        async with aclosing(watch(client, request, Thing)) as events:
            first = await anext(events)
        assert isinstance(first, Bookmark)
        assert int(first.resource_version) > 0

    play(admin, script)


def test_a_token_says_who_we_are_and_what_we_may(admin: Config, token: str, tmp_path: Path) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        assert await whoami(client) == f"system:serviceaccount:{ns}:default"
        with pytest.raises(Forbidden, match=r"cannot list resource .*ask for this right"):
            await client.call(requests.list_page(SECRETS, ns))
        review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "secrets"}}}
        answer = await client.call(requests.create(SELF_SUBJECT_ACCESS_REVIEWS, "", review))
        assert answer["status"]["allowed"] is False

    play(as_user(admin, tmp_path, {"token": token}), script)


def test_a_refused_token_is_read_again_from_its_file(
    admin: Config, token: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("stale")

    async def script(client: Client) -> None:
        with pytest.raises(Unauthorized):
            await whoami(client)
        file.write_text(token + "\n")
        assert (await whoami(client)).endswith(":default")

    play(as_user(admin, tmp_path, {"tokenFile": "token"}), script)


def test_a_plugins_token_is_taken(admin: Config, token: str, tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
    (tmp_path / "answer").write_text(json.dumps(answer))
    entry = {
        "apiVersion": version,
        "command": sys.executable,
        "args": ["-c", "import sys; print(open(sys.argv[1]).read())", str(tmp_path / "answer")],
        "interactiveMode": "Never",
    }

    async def script(client: Client) -> None:
        assert (await whoami(client)).endswith(":default")

    play(as_user(admin, tmp_path, {"exec": entry}), script)


def test_an_administrator_acts_as_another_with_all_groups(
    namespace: Kubectl, admin: Config, tmp_path: Path
) -> None:
    for group, kind in (("g1", "configmaps"), ("g2", "pods")):
        namespace("create", "role", group, "--verb=list", f"--resource={kind}")
        namespace("create", "rolebinding", group, f"--role={group}", f"--group={group}")
    user = {
        "client-certificate-data": _b64(admin.trust.certificate),
        "client-key-data": _b64(admin.trust.key),
        "as": "ann",
        "as-groups": ["g1", "g2"],
        "as-user-extra": {"example.com/team": ["t"]},
    }

    async def script(client: Client) -> None:
        assert await whoami(client) == "ann"
        for resource in (CONFIGMAPS, PODS):
            await client.call(requests.list_page(resource, admin.namespace), None)

    play(as_user(admin, tmp_path, user), script)


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_servers_certificate_is_checked(admin: Config, tmp_path: Path) -> None:
    other = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", "/dev/null", "-subj", "/CN=other", "-days", "1"],
        capture_output=True, check=True, timeout=30,
    ).stdout  # fmt: skip

    async def script(client: Client) -> None:
        with pytest.raises(Unreachable, match="do not trust") as caught:
            await whoami(client)
        assert caught.value.what == "tls"

    trust = msgspec.structs.replace(admin.trust, authority=other)
    play(msgspec.structs.replace(admin, trust=trust), script)


def test_a_pod_without_a_node_has_no_log_and_runs_no_command(admin: Config) -> None:
    ns = admin.namespace

    async def script(client: Client) -> None:
        await client.call(requests.create(PODS, ns, pod("p")), None)
        with pytest.raises(NotFound, match='"none" not found'):
            await kube_exec.run(client, ns, "none", ["ls"])
        with pytest.raises(ApiError, match="does not have a host assigned"):
            await kube_exec.run(client, ns, "p", ["ls"])
        assert await client.fetch(requests.logs(ns, "p", LogOptions())) == b""
        with pytest.raises(NotFound):
            async for _ in client.lines(requests.logs(ns, "none", LogOptions(follow=True))):
                pass

    play(admin, script)


def test_lists_of_files_are_merged_as_kubectl_merges_them(
    namespace: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def file(name: str, **parts: Any) -> str:
        path = tmp_path / name / "config"
        path.parent.mkdir()
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **parts}))
        return str(path)

    def cluster(name: str, **fields: Any) -> Object:
        return {"name": name, "cluster": fields}

    def user(name: str, **fields: Any) -> Object:
        return {"name": name, "user": fields}

    def context(name: str, **fields: str) -> Object:
        return {"name": name, "context": fields}

    listed = [
        str(tmp_path / "missing"),
        file(
            "one",
            clusters=[cluster("k", server="https://one:1"), cluster("m", server="https://m:1")],
            users=[user("u", token="first")],
            contexts=[context("c", cluster="k", user="u")],
        ),
        file(
            "two",
            **{"current-context": "c"},
            clusters=[
                cluster("k", server="https://two:2", **{"tls-server-name": "two"}),
                cluster("l", server="https://l:2", **{"certificate-authority": "ca.crt"}),
            ],
            users=[user("u", token="second", tokenFile="t"), user("v", tokenFile="token")],
            contexts=[
                context("c", cluster="l", user="v", namespace="two"),
                context("d", cluster="l", user="v", namespace="two"),
            ],
        ),
        file("three", **{"current-context": "d"}),
    ]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(listed))
    for name in (None, "d"):
        view = subprocess.run(
            ["kubectl", "config", "view", "--raw", "--minify", "-o", "json",
             *([f"--context={name}"] if name else [])],
            env=environment(namespace.spec) | {"KUBECONFIG": os.environ["KUBECONFIG"]},
            capture_output=True, check=True, timeout=30,
        ).stdout  # fmt: skip
        theirs = json.loads(view)
        ours = load(context=name)
        their_cluster = theirs["clusters"][0]["cluster"]
        their_user = theirs["users"][0]["user"]
        their_context = theirs["contexts"][0]["context"]
        assert ours.server == their_cluster["server"]
        assert ours.trust.server_name == their_cluster.get("tls-server-name", "")
        # kubectl shows paths as they were written; relative ones start at their own file.
        if authority := their_cluster.get("certificate-authority"):
            assert ours.trust.authority_file == str(tmp_path / "two" / authority)
        assert ours.namespace == their_context.get("namespace", "default")
        if "tokenFile" in their_user:
            path = tmp_path / "two" / their_user["tokenFile"]
            assert repr(ours.credentials) == f"TokenFile({str(path)!r})"
        else:
            credential = ours.credentials.ready()
            assert credential
            assert credential.authorization == f"Bearer {their_user['token']}"
