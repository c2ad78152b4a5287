"""When the controller starts anew, as PodGroups came or went, and when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from mpi_trainer.controller.trainjob import discovery
from mpi_trainer.kube import errors
from mpi_trainer.kube.errors import Status
from mpi_trainer.kube.resources import POD_GROUPS

COSCHEDULING, VOLCANO = POD_GROUPS
FAULT = 503
Served = frozenset[str]
BOTH: Served = frozenset(one.group for one in POD_GROUPS)
NONE: Served = frozenset()
ONE: Served = frozenset({COSCHEDULING.group})


class Scripted:
    """An API server that serves, look after look, these groups; None: it is in trouble."""

    def __init__(self, looks: Iterable[Served | None]) -> None:
        self._looks = [look for look in looks for _ in POD_GROUPS]

    async def call(self, request: Any, kind: Any) -> Any:
        if not self._looks:
            raise EOFError
        served = self._looks.pop(0)
        if served is None:
            if self._looks:
                self._looks.pop(0)  # The first of a look's questions has ended it.
            raise errors.from_status(request, Status(code=FAULT, message="not now"))
        if request.path.split("/")[2] not in served:
            raise errors.from_status(request, Status(code=404, message="unknown"))
        return msgspec.convert({"resources": [{"name": "podgroups"}]}, kind)


def starts_anew(monkeypatch: pytest.MonkeyPatch, before: Served, *looks: Served | None) -> bool:
    monkeypatch.setattr(discovery, "AGAIN", 0.0)
    told: list[bool] = []
    server: Any = Scripted(looks)
    unserved: Sequence[Any] = [one for one in POD_GROUPS if one.group not in before]
    watching = discovery.until_changed(server, lambda: told.append(True), POD_GROUPS, unserved)
    try:
        asyncio.run(watching)
    except EOFError:
        return False
    return told == [True]


def test_it_starts_anew_once_pod_groups_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert starts_anew(monkeypatch, NONE, NONE, NONE, ONE)
    assert starts_anew(monkeypatch, ONE, BOTH)


def test_it_starts_anew_once_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or no job would ever begin: each would wait for a group that cannot be made."""
    assert starts_anew(monkeypatch, BOTH, BOTH, ONE, ONE)
    assert starts_anew(monkeypatch, ONE, NONE, NONE)


def test_an_api_server_that_does_not_know_them_yet_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that starts, or one of several that is behind, would have it start anew again and
    again."""
    assert not starts_anew(monkeypatch, BOTH, NONE, BOTH, ONE, BOTH, None, NONE, BOTH)
    assert not starts_anew(monkeypatch, NONE, None, NONE, None, None, NONE)


def test_a_group_that_cannot_be_asked_for_does_not_keep_the_controller_from_starting() -> None:
    """It may be served by a program that is down, and nobody may want gangs."""
    server: Any = Scripted([BOTH, None])
    assert asyncio.run(discovery.unserved(server, POD_GROUPS)) == ()
    assert asyncio.run(discovery.unserved(server, (VOLCANO,))) == (VOLCANO,)
