"""Pages of a list: every job once, in the order that was asked for."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.server.paging import ListQuery, SortBy, page
from mpi_trainer.server.problems import Refused

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STATES = ("Created", "Running", "Succeeded")


def job(number: int, **fields: Any) -> JobSummary:
    state = STATES[number % 3]
    started = NOW - timedelta(minutes=number % 5) if state != "Created" else None
    made = JobSummary(
        Key(f"team-{number % 2}", f"job-{number:03}"),
        state,
        NOW - timedelta(hours=number % 7),
        started=started,
        completed=NOW if state == "Succeeded" else None,
        workers=number % 4,
    )
    return msgspec.structs.replace(made, **fields)


JOBS = [job(n) for n in range(40)]


def read(query: ListQuery, jobs: list[JobSummary], now: datetime = NOW) -> list[str]:
    """Names, from all pages; the clock goes on between them."""
    found: list[str] = []
    for _ in range(len(jobs) + 1):
        one = page(jobs, query, now)
        assert len(one.jobs) <= query.limit and one.total == len(jobs)
        found += [str(each.key) for each in one.jobs]
        if not one.token:
            return found
        query = msgspec.structs.replace(query, continue_=one.token)
        now += timedelta(minutes=10)
    raise AssertionError("there are more pages than jobs")


@given(
    by=st.sampled_from(get_args(SortBy)),
    order=st.sampled_from(["asc", "desc", None]),
    limit=st.integers(1, 50),
)
def test_pages_hold_every_job_once_in_one_order(by: Any, order: Any, limit: int) -> None:
    paged = read(ListQuery(sort_by=by, order=order, limit=limit), JOBS)
    assert sorted(paged) == sorted(str(one.key) for one in JOBS)
    assert paged == read(ListQuery(sort_by=by, order=order, limit=500), JOBS)


def test_newest_come_first_by_default() -> None:
    created = [one.created for one in page(JOBS, ListQuery(), NOW).jobs]
    assert created == sorted(created, reverse=True)


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_jobs_without_a_duration_come_last_in_either_order(order: Any) -> None:
    found = page(JOBS, ListQuery(sort_by="duration", order=order), NOW).jobs
    known = [one.started is not None for one in found]
    assert known == sorted(known, reverse=True)


def test_a_job_that_stays_is_neither_lost_nor_doubled_when_others_come_and_go() -> None:
    query = ListQuery(sort_by="name", limit=10)
    first = page(JOBS, query, NOW)
    others = [*JOBS[5:8], *JOBS[10:], job(2, key=Key("team-0", "job-0025"))]
    rest = read(msgspec.structs.replace(query, continue_=first.token), others)
    seen = [str(one.key) for one in first.jobs] + rest
    assert [name for name in seen if name in {str(one.key) for one in JOBS}] == [
        str(one.key) for one in JOBS
    ]


def test_filters_are_taken_together_and_counted() -> None:
    query = ListQuery(state=("Running", "Created"), name="job-01", limit=2)
    found = page(JOBS, query, NOW)
    wanted = [one for one in JOBS if one.state != "Succeeded" and "job-01" in one.key.name]
    assert found.total == len(wanted) > len(found.jobs) == 2


def test_a_token_is_for_the_list_that_it_came_from() -> None:
    token = page(JOBS, ListQuery(limit=3), NOW).token
    assert page(JOBS, ListQuery(limit=7, continue_=token), NOW).jobs
    with pytest.raises(Refused, match="a list with other parameters; leave it out"):
        page(JOBS, ListQuery(sort_by="name", continue_=token), NOW)


def coded(value: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def genuine() -> list[Any]:
    token = page(JOBS, ListQuery(limit=3), NOW).token
    made: list[Any] = msgspec.json.decode(base64.urlsafe_b64decode(token + "=="))
    return made


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "%%%",
        "é",
        "a" * 1000,
        coded([]),
        coded({"a": 1}),
        coded([genuine()[0], 1e300, genuine()[2]]),
        coded([genuine()[0], 0, [False, "text", "", "", ""]]),
        coded([genuine()[0], 0, ["", 0.0, "", "", ""]]),
    ],
)
def test_a_made_up_token_is_refused(token: str) -> None:
    with pytest.raises(Refused) as caught:
        page(JOBS, ListQuery(continue_=token), NOW)
    assert caught.value.problem.status == 400
    assert caught.value.problem.errors[0].field == "continue"
