"""Parameters and names of a request: everything that is wrong, at once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mpi_trainer.server.endpoints.logs import LogsQuery
from mpi_trainer.server.paging import ListQuery
from mpi_trainer.server.parameters import check_names, query
from mpi_trainer.server.problems import Refused


def test_parameters_become_values_of_their_types() -> None:
    given = [("state", "Running,Failed"), ("sortBy", "name"), ("limit", "7")]
    assert query(ListQuery, given) == ListQuery(("Running", "Failed"), sort_by="name", limit=7)
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    given = [("since", "2026-01-31T12:00:00Z"), ("allPods", "true"), ("rank", "0")]
    assert query(LogsQuery, given) == LogsQuery(since=since, all_pods=True, rank=0)
    assert query(LogsQuery, [("since", "2026-01-31T12:00:00")]).since == since


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("limit", "0")], 'limit: Invalid value: "0": must be a whole number from 1 to 500'),
        ([("limit", "many")], "must be a whole number from 1 to 500"),
        ([("limit", "\u0661\u0662x")], "must be a whole number"),
        ([("limt", "5")], "limt: Unknown field; did you mean limit?"),
        ([("team", "a")], "team: Unknown field; use one of state, name,"),
        ([("name", "a"), ("name", "b")], "name: Duplicate value; give it once"),
        ([("state", "Runing")], "must be one of Created, Failed,"),
        ([("order", "up")], "must be one of asc, desc"),
        ([("name", "x" * 2000)], "must have at most 1024 characters"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_would_be_right(
    given: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(Refused) as caught:
        query(ListQuery, given)
    assert caught.value.problem.status == 400 and said in caught.value.problem.detail


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("rank", "-1")], "must be a whole number, 0 or more"),
        ([("since", "yesterday")], "must be a time as RFC 3339 has it"),
        ([("since", "0001-01-01T00:00:00+23:59")], "must be a time as RFC 3339 has it"),
        ([("until", "9999-12-31T23:59:59-23:59")], "must be a time as RFC 3339 has it"),
        ([("allPods", "perhaps")], "must be true or false"),
        ([("level", "loud")], "must be one of"),
        ([("tail", "99999999")], "must be a whole number from 1 to 10000"),
    ],
)
def test_a_wrong_choice_of_lines_is_named(given: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(Refused, match=said):
        query(LogsQuery, given)


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(Refused) as caught:
        query(ListQuery, [("limit", "0"), ("order", "up"), ("x", "y")])
    assert [one.field for one in caught.value.problem.errors] == ["limit", "order", "x"]


@pytest.mark.parametrize(
    "path",
    [
        [("namespace", "..")],
        [("namespace", "a/b")],
        [("namespace", "a.b")],
        [("name", "..")],
        [("name", "../secrets/x")],
        [("name", "a%2fb")],
        [("name", "A")],
        [("name", "a\r\nX-Evil: 1")],
        [("name", "a" * 254)],
        [("name", "")],
        [("index", "-1")],
        [("index", "\u0663")],
        [("index", "1" * 7)],
    ],
)
def test_a_name_that_no_object_can_have_is_refused(path: list[tuple[str, str]]) -> None:
    with pytest.raises(Refused) as caught:
        check_names(path)
    assert caught.value.problem.errors[0].field == path[0][0]


def test_names_of_objects_are_taken() -> None:
    check_names([("namespace", "team-1"), ("name", "my.job-2"), ("index", "12")])
