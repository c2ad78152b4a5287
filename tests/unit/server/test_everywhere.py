"""Lists of all namespaces, for a caller who may not have them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mpi_trainer.sdk.backends.backend import JobQuery, JobSummary, Key
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.server import everywhere

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Closed:
    """A cluster of which the caller sees `seen` namespaces and may list jobs in those `open`."""

    def __init__(self, seen: Sequence[str], opened: Sequence[str]) -> None:
        self.seen = seen
        self.opened = opened
        self.asked: list[str | None] = []
        self.at_once = self.most_at_once = 0

    async def namespaces(self) -> Sequence[str]:
        return self.seen

    async def list(self, namespace: str | None, query: JobQuery) -> Sequence[JobSummary]:
        self.asked.append(namespace)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if namespace is None or namespace not in self.opened:
            raise K8sApiException("forbidden", status=403)
        age = timedelta(hours=self.seen.index(namespace))
        return [JobSummary(Key(namespace, "one"), "Running", NOW - age)]


def jobs(closed: Any, namespace: str = "") -> everywhere.Found:
    return asyncio.run(everywhere.jobs(closed, namespace, JobQuery()))


def test_jobs_are_those_of_the_namespaces_that_are_open_newest_first() -> None:
    found, notes = jobs(Closed(("c", "a", "b"), ("a", "c")))
    assert [one.key.namespace for one in found] == ["c", "a"]
    assert notes == ("you may not list jobs of all namespaces: these are of 2 namespaces",)


def test_a_namespace_that_is_closed_is_an_error_and_no_other_is_asked_for() -> None:
    closed = Closed(("a", "b"), ("a",))
    with pytest.raises(K8sApiException):
        jobs(closed, "b")
    assert closed.asked == ["b"]
    with pytest.raises(K8sApiException):
        jobs(Closed(("a", "b"), ()))


def test_of_very_many_namespaces_only_some_are_asked_and_that_is_said() -> None:
    seen = [f"n{n}" for n in range(everywhere.MOST + 5)]
    closed = Closed(seen, seen)
    found, notes = jobs(closed)
    assert len(found) == everywhere.MOST and closed.most_at_once <= everywhere.AT_ONCE
    assert notes[0].endswith("; 5 more are not looked into")


def test_where_one_list_fails_the_others_are_not_read_for_nobody() -> None:
    class Ill(Closed):
        async def list(self, namespace: str | None, query: JobQuery) -> Sequence[JobSummary]:
            found = await super().list(namespace, query)
            if namespace == "n0":
                raise K8sApiException("too many requests", status=429)
            return found

    async def run() -> None:
        seen = [f"n{n}" for n in range(100)]
        ill: Any = Ill(seen, seen)
        with pytest.raises(K8sApiException, match="too many"):
            await everywhere.jobs(ill, "", JobQuery())
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(ill.asked) <= 3 * everywhere.AT_ONCE

    asyncio.run(run())
