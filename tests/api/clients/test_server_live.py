"""Live streams before a real API server, with real tokens: one watch for many, and nobody sees what
they may not see (SC-009).

The server's own login is the administrator's and must not be used; rights are believed for a second
here, where a minute is usual.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from mpi_trainer.kube.config import load
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import PassedOn
from mpi_trainer.server.live.hub import LiveSettings
from mpi_trainer.server.rates import Rate
from tests.api.accounts import Account
from tests.api.admin import JOBS, Admin
from tests.api.clients.test_sdk_roles import ROLES
from tests.api.clients.test_server import Team, _answers, team
from tests.api.lab import admin, served
from tests.api.running import free_port, job
from tests.cluster import Kubectl, eventually
from tests.live_reader import Ended, LiveReader
from tests.rest import Rest
from tests.rest import served as serving
from tools.cluster.spec import Spec

__all__ = ["admin", "served"]

LIVE = "/api/v1/live/jobs"
REVIEW = 1.0
READERS = int(os.environ.get("READERS", "20"))
"""of a server that is killed; by hand 100, which is all that two callers may have"""
VERSION = "resourceVersion"
other = admin


@pytest.fixture
def ours(admin: Admin, served: Spec) -> Team:
    Kubectl(served)("apply", "-k", str(ROLES))
    return team(admin, served, "ours")


@pytest.fixture
def theirs(other: Admin, served: Spec, ours: Team) -> Team:
    return team(other, served, "theirs")


@pytest.fixture
def port(served: Spec) -> Iterator[int]:
    settings = LiveSettings(heartbeat=0.5, stalled=2.0, review=REVIEW)
    callers = PassedOn(load(served.kubeconfig))
    with serving(callers, Settings(rate=Rate(10_000, 10_000), live=settings)) as number:
        yield number


def space(one: Team) -> str:
    return f"{LIVE}?namespace={one.admin.namespace}"


def label(one: Team, name: str, value: str) -> str:
    """Changes a job; its new version."""
    changed = one.admin.patch(f"{JOBS}/mpijobs/{name}", {"metadata": {"labels": {"n": value}}})
    return str(changed["metadata"]["resourceVersion"])


def names(snapshot: Any) -> list[str]:
    return sorted(one["name"] for one in snapshot.data["items"])


def test_two_callers_share_what_both_may_see_and_get_every_change(port: int, ours: Team) -> None:
    user, viewer = Rest(port, ours.user.token), Rest(port, ours.viewer.token)
    with LiveReader(user, space(ours)) as first, LiveReader(viewer, space(ours)) as second:
        assert names(first.next()) == names(second.next()) == ["ours"]
        ours.admin.create(f"{JOBS}/mpijobs", job(name="new"))
        for reader in (first, second):
            assert reader.next("job").data["name"] == "new"
        version = label(ours, "new", "1")
        for reader in (first, second):
            found = reader.next("job")
            assert found.id == found.data["resourceVersion"] == version
        # The one whose login the watch uses leaves: the other goes on without a snapshot.
        first.close()
        version = label(ours, "new", "2")
        assert second.next().id == version
        ours.admin.delete(f"{JOBS}/mpijobs/new")
        assert second.next("deleted").data["name"] == "new"
    assert [one.event for one in second.heard] == ["snapshot", "job", "job", "job", "deleted"]


def test_who_loses_the_right_is_told_so_and_nothing_more(port: int, ours: Team) -> None:
    """The watch goes on with the other's login."""
    user, viewer = Rest(port, ours.user.token), Rest(port, ours.viewer.token)
    with LiveReader(user, space(ours)) as first, LiveReader(viewer, space(ours)) as second:
        first.next("snapshot")
        second.next("snapshot")
        Kubectl(ours.admin.spec, ours.admin.namespace)("delete", "rolebinding", "user")
        refused = first.next("error", seconds=15 * REVIEW)
        assert refused.data["status"] == 403 and "forbidden" in refused.data["detail"]
        with pytest.raises(Ended):
            first.next()
        versions = [label(ours, "ours", str(n)) for n in range(5)]
        seen = [second.next("job").id]
        while seen[-1] != versions[-1]:
            seen.append(second.next("job").id)
    assert [one.event for one in first.heard] == ["snapshot", "error"]
    assert LiveReader(user, space(ours)).problem["status"] == 403
    assert all(one.event in ("snapshot", "job") for one in second.heard)


def short_token(one: Account, seconds: float) -> str:
    """The account's token with an earlier end: the API server itself gives none below 10 min."""
    head, body, _ = one.token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims["exp"] = int(time.time() + seconds)
    text = f"{head}.{_base64(json.dumps(claims).encode())}"
    pem = (one.kubectl.spec.state / "pki" / "sa.key").read_bytes()
    key: Any = serialization.load_pem_private_key(pem, None)
    pair = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    size = (key.curve.key_size + 7) // 8
    return f"{text}.{_base64(b''.join(number.to_bytes(size, 'big') for number in pair))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_a_stream_ends_with_its_login_and_others_go_on(port: int, ours: Team) -> None:
    brief = Rest(port, short_token(ours.user, 6))
    viewer = Rest(port, ours.viewer.token)
    with LiveReader(brief, space(ours)) as first, LiveReader(viewer, space(ours)) as second:
        first.next("snapshot")
        second.next("snapshot")
        with LiveReader(brief, f"{ours.jobs}/ours/live") as one:
            assert one.next().event == "job"
            ended = first.next("error", seconds=20)
            assert ended.data["status"] == 401 and "expired" in ended.data["detail"]
            label(ours, "ours", "late")
            assert second.next("job").data["name"] == "ours"
            assert one.next("error", seconds=20).data["status"] == 401
    assert [event.event for event in first.heard] == ["snapshot", "error"]
    assert LiveReader(brief, space(ours)).status == 401


def test_interleaved_callers_under_load_get_no_foreign_object(
    port: int, ours: Team, theirs: Team
) -> None:
    """0 foreign objects, and all of their own."""
    teams = (ours, theirs)
    readers = [
        LiveReader(Rest(port, who.token), space(one))
        for _ in range(5)
        for one in teams
        for who in (one.user, one.viewer)
    ]
    last: dict[str, str] = {}

    def load(one: Team) -> None:
        for number in range(40):
            last[one.admin.namespace] = label(one, "ours" if one is ours else "theirs", str(number))

    threads = [threading.Thread(target=load, args=(one,)) for one in teams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        for place, reader in enumerate(readers):
            namespace = teams[place // 2 % 2].admin.namespace
            while reader.next("job").id != last[namespace]:
                pass
            for event in reader.heard:
                items = event.data["items"] if event.event == "snapshot" else [event.data]
                assert [item["namespace"] for item in items] == [namespace], event
            ids = [event.id for event in reader.heard if event.event == "job"]
            assert ids == sorted(set(ids), key=int), "in order, and none twice"
    finally:
        for reader in readers:
            reader.close()


def test_without_the_right_for_all_namespaces_each_is_watched_that_may_be_seen(
    port: int, ours: Team, theirs: Team
) -> None:
    foreign = LiveReader(Rest(port, ours.user.token), space(theirs))
    assert foreign.status == 403 and theirs.admin.namespace in foreign.problem["detail"]
    everywhere = LiveReader(Rest(port, ours.user.token), LIVE)
    assert everywhere.status == 403
    kubectl = Kubectl(ours.admin.spec, ours.admin.namespace)
    account = f"{ours.admin.namespace}:user"
    name = f"see-{ours.admin.namespace}"
    kubectl("create", "clusterrole", name, "--verb=list", "--resource=namespaces")
    kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={account}"
    )
    try:
        time.sleep(2 * REVIEW)  # until earlier answers about the right are no longer believed
        with LiveReader(Rest(port, ours.user.token), LIVE) as reader:
            assert names(reader.next("snapshot")) == ["ours"]
            label(theirs, "theirs", "1")
            version = label(ours, "ours", "1")
            assert reader.next().id == version
    finally:
        kubectl("delete", "clusterrolebinding", name)
        kubectl("delete", "clusterrole", name)


def test_a_job_is_followed_until_it_is_deleted(port: int, ours: Team) -> None:
    viewer = Rest(port, ours.viewer.token)
    with LiveReader(viewer, f"{ours.jobs}/ours/live") as reader:
        uid = reader.next("job").data["uid"]
        assert reader.next("status").data["name"] == "ours"
        version = label(ours, "ours", "1")
        while reader.next("job").id != version:
            pass
        ours.admin.delete(f"{JOBS}/mpijobs/ours")
        gone = reader.next("deleted")
        assert gone.data["uid"] == uid
        with pytest.raises(Ended):
            reader.next()


@contextmanager
def process(spec: Spec, port: int, login: Rest) -> Iterator[subprocess.Popen[bytes]]:
    """The server as a process of its own."""
    options = ("--kubeconfig", str(spec.kubeconfig), "--port", str(port))
    words = [sys.executable, "-m", "mpi_trainer.server", *options]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as made:
        try:
            eventually("the API is served", lambda: _answers(login))
            yield made
        finally:
            made.kill()


def version_in(snapshot: Any, name: str) -> str:
    found = {one["name"]: one for one in snapshot.data["items"]}
    return str(found[name]["resourceVersion"])


def test_a_server_that_is_killed_loses_and_doubles_nothing_for_its_readers(
    served: Spec, ours: Team
) -> None:
    """Each comes back to the next server while jobs change, has them as they are then, and is told
    every later change once."""
    port = free_port()
    logins = [Rest(port, one.token) for one in (ours.user, ours.viewer)]
    readers = []
    try:
        with process(served, port, logins[0]) as server:
            readers = [LiveReader(logins[n % 2], space(ours)) for n in range(READERS)]
            version = label(ours, "ours", "1")
            for reader in readers:
                seen = version_in(reader.next("snapshot"), "ours")
                assert seen == version or reader.next("job").id == version
            server.kill()
            for reader in readers:
                assert reader.ended.wait(30)
                reader.close()
        away = label(ours, "ours", "away")
        versions = [str(ours.admin.create(f"{JOBS}/mpijobs", job(name="new"))["metadata"][VERSION])]
        with process(served, port, logins[0]):
            readers = [
                LiveReader(logins[n % 2], space(ours), one.position)
                for n, one in enumerate(readers)
            ]
            versions += [label(ours, "new", str(number)) for number in range(5)]
            for reader in readers:
                first = reader.next()
                assert first.event == "snapshot" and names(first) == ["new", "ours"]
                assert version_in(first, "ours") == away
                told = [version_in(first, "new")]
                while told[-1] != versions[-1]:
                    told.append(reader.next("job").id)
                assert told == versions[-len(told) :], "in order, none twice and none left out"
    finally:
        for reader in readers:
            reader.close()
