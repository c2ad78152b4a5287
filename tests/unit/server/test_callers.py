"""Who is asking: nobody acts with another's login, or with the server's own."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from mpi_trainer.kube.config import Config
from mpi_trainer.kube.credentials import Fixed
from mpi_trainer.kube.trust import Trust
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.server import callers
from mpi_trainer.server.app import HttpAsked
from mpi_trainer.server.callers import FORWARDED, Caller, Loopback, PassedOn, with_token
from mpi_trainer.server.problems import Refused

OWN = Config(
    "https://cluster.example.com",
    trust=Trust(authority=b"ca", certificate=b"own", key=b"own", key_file="/own"),
    credentials=Fixed("Bearer own"),
    impersonation=(("Impersonate-User", "admin"),),
)


def token_of(caller: Caller) -> str:
    assert isinstance(caller.backend, ClusterBackend)
    credential = caller.backend.config.credentials.ready()
    assert credential is not None
    return credential.authorization


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_the_servers_own_login_is_not_passed_on() -> None:
    config = with_token(OWN, "theirs")
    assert config.trust == Trust(authority=b"ca") and config.impersonation == ()
    credential = config.credentials.ready()
    assert credential is not None and credential.authorization == "Bearer theirs"
    assert (credential.certificate, credential.key) == (b"", b"")


def test_every_token_has_a_backend_of_its_own() -> None:
    known = PassedOn(OWN)
    one, other = (known.caller(bearer(t), {}) for t in ("a.a", "b.b"))
    assert one.backend is not other.backend and one.id != other.id
    assert (token_of(one), token_of(other)) == ("Bearer a.a", "Bearer b.b")
    assert known.caller(bearer("a.a"), {}).backend is one.backend
    assert "a.a" not in one.id and not one.ambient


def test_callers_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "MOST_CALLERS", 2)
    known = PassedOn(OWN)
    first = known.caller(bearer("a"), {}).backend
    for token in "bca":
        known.caller(bearer(token), {})
    assert known.caller(bearer("a"), {}).backend is not first


def test_made_up_tokens_displace_nobody_whom_the_cluster_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(callers, "MOST_CALLERS", 2)
    known = PassedOn(OWN)
    first = known.caller(bearer("a"), {})
    assert first.login is not None and not first.login.known
    monkeypatch.setattr(first.login, "_at", 0.0)
    for number in range(50):
        known.caller(bearer(f"made-up-{number}"), {})
    assert known.caller(bearer("a"), {}).backend is first.backend


def test_the_cluster_is_asked_about_a_token_that_has_ended() -> None:
    """Or what was read with it could be paged through for minutes after."""

    async def run() -> None:
        asked = 0

        class Cluster:
            async def user(self) -> str:
                nonlocal asked
                asked += 1
                return "anna"

        login = callers.Login(cast(ClusterBackend, Cluster()))
        for expires in (None, time.time() + 60, None):
            await login.check(expires)
        assert asked == 1
        for _ in range(2):
            await login.check(time.time() - 1)
        assert asked == 3

    asyncio.run(run())


def test_made_up_tokens_are_slowed_down() -> None:
    known = PassedOn(OWN)
    with pytest.raises(Refused, match="too many calls"):
        for n in range(1000):
            known.caller(bearer(f"t{n}"), {})


def test_a_forwarded_token_counts_only_behind_a_proxy() -> None:
    headers = {FORWARDED: "theirs"}
    caller = PassedOn(OWN, forwarded=True).caller(headers, {})
    assert token_of(caller) == "Bearer theirs" and caller.ambient
    with pytest.raises(Refused):
        PassedOn(OWN).caller(headers, {})
    both = headers | bearer("mine")
    assert token_of(PassedOn(OWN, forwarded=True).caller(both, {})) == "Bearer mine"


@pytest.mark.parametrize("name", ["authorization", FORWARDED])
def test_of_two_logins_in_one_request_none_counts(name: str) -> None:
    """As over gRPC: a proxy may have checked the other one."""
    known = PassedOn(OWN, forwarded=True)
    given = ("Bearer one", "Bearer two") if name == "authorization" else ("one", "two")
    for sent in (given[:1], given):
        headers = CIMultiDict((name, value) for value in sent)
        asked = HttpAsked(make_mocked_request("GET", "/api/v1/jobs", headers))
        if len(sent) == 1:
            assert token_of(asked.caller(known)) == "Bearer one"
        else:
            with pytest.raises(Refused, match="no login"):
                asked.caller(known)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer "},
        bearer("a b"),
        bearer("a\r\nImpersonate-User: admin"),
        bearer("é"),
        bearer("a" * 20_000),
    ],
)
def test_without_a_token_nobody_is_asking(headers: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        PassedOn(OWN).caller(headers, {})
    assert caught.value.problem.status == 401
    assert ("WWW-Authenticate", "Bearer") in caught.value.headers
    assert "aaa" not in caught.value.problem.detail


def test_the_printed_token_or_its_cookie_opens_a_server_on_this_machine() -> None:
    known = Loopback(LocalBackend(), "session-1")
    assert not known.caller(bearer(known.token), {}).ambient
    assert known.caller({}, {"session-1": known.session}).ambient
    for headers, cookies in (
        ({}, {}),
        (bearer("x"), {}),
        (bearer(known.session), {}),
        ({}, {"session-1": known.token}),
        ({}, {"session-2": known.session}),
        ({}, {"session-1": "é"}),
    ):
        with pytest.raises(Refused, match="not this server's"):
            known.caller(headers, cookies)
    assert known.token != Loopback(LocalBackend(), "session-1").token
