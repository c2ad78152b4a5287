"""Rates, foreign pages and names of the server."""

from __future__ import annotations

import pytest

from mpi_trainer.server import rates
from mpi_trainer.server.forgery import MARK, check_host, check_origin
from mpi_trainer.server.problems import Refused
from mpi_trainer.server.rates import Rate, RateLimit

HOST = {"Host": "127.0.0.1:8800"}
OWN = {**HOST, "Origin": "http://127.0.0.1:8800"}
FOREIGN = {**HOST, "Origin": "https://evil.example"}


def test_a_caller_has_so_many_calls_at_once_then_so_many_a_second() -> None:
    limit = RateLimit(Rate(at_once=3, per_second=2.0))
    assert [limit.wait("a", 0.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert limit.wait("b", 0.0) == 0
    assert limit.wait("a", 0.5) == 0
    assert limit.wait("a", 0.5) > 0
    assert [limit.wait("a", 100.0) for _ in range(4)] == [0, 0, 0, 0.5]


def test_callers_are_forgotten_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MOST_CALLERS", 2)
    limit = RateLimit(Rate(at_once=1, per_second=0.1))
    assert limit.wait("a", 0.0) == 0 and limit.wait("a", 0.0) > 0
    limit.wait("b", 0.0)
    limit.wait("c", 0.0)
    assert limit.wait("a", 0.0) == 0


def test_a_server_on_this_machine_answers_to_its_own_names_alone() -> None:
    hosts = frozenset({"127.0.0.1:8800", "localhost:8800"})
    check_host(HOST, hosts)
    check_host({"Host": "LOCALHOST:8800"}, hosts)
    check_host({"Host": "any.example"}, frozenset())
    for name in ("evil.example:8800", "127.0.0.1", "127.0.0.1:8800.evil.example", ""):
        with pytest.raises(Refused) as caught:
            check_host({"Host": name}, hosts)
        assert caught.value.problem.status == 421


@pytest.mark.parametrize(
    ("headers", "changes", "ambient"),
    [
        (HOST, True, False),
        (HOST, False, True),
        (OWN, False, True),
        ({**OWN, MARK: "odh"}, True, True),
    ],
)
def test_programs_and_the_servers_own_pages_may_call(
    headers: dict[str, str], changes: bool, ambient: bool
) -> None:
    check_origin(headers, changes=changes, ambient=ambient)


@pytest.mark.parametrize(
    ("headers", "changes", "ambient"),
    [
        (FOREIGN, False, False),
        (FOREIGN, False, True),
        ({**FOREIGN, MARK: "odh"}, True, True),
        ({**HOST, "Origin": "null"}, False, True),
        (HOST, True, True),
        (OWN, True, True),
        ({**HOST, MARK: "odh"}, True, True),
    ],
)
def test_what_another_site_may_have_asked_for_is_refused(
    headers: dict[str, str], changes: bool, ambient: bool
) -> None:
    with pytest.raises(Refused) as caught:
        check_origin(headers, changes=changes, ambient=ambient)
    assert caught.value.problem.status == 403
