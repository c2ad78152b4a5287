"""Whoever looks live at jobs gets lists of them from their own stream, with the rights of a stream;
the API server and its tokens are real."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mpi_trainer.sdk.backends.backend import ALL_JOBS, JobQuery, JobSummary
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from tests.api.admin import JOBS
from tests.api.clients.test_server import Team
from tests.api.clients.test_server_live import (
    REVIEW,
    admin,
    label,
    other,
    ours,
    port,
    served,
    space,
    theirs,
)
from tests.api.running import job
from tests.cluster import Kubectl, eventually
from tests.live_reader import LiveReader
from tests.rest import Rest

__all__ = ["admin", "other", "ours", "port", "served", "theirs"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str | None]]:
    """The namespaces whose jobs were listed."""
    seen: list[str | None] = []
    plain = ClusterBackend.list

    async def counted(
        self: ClusterBackend, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        seen.append(namespace)
        return await plain(self, namespace, query)

    monkeypatch.setattr(ClusterBackend, "list", counted)
    yield seen


def listed(user: Rest, one: Team, query: str = "") -> dict[str, Any]:
    reply = user.ask("GET", f"/api/v1/namespaces/{one.admin.namespace}/jobs{query}")
    assert reply.status == 200, reply
    return {item["name"]: item for item in reply.data["items"]}


def test_a_list_beside_an_open_stream_costs_no_list_and_is_the_same(
    port: int, ours: Team, asked: list[str | None]
) -> None:
    user, viewer = Rest(port, ours.user.token), Rest(port, ours.viewer.token)
    read = listed(user, ours)
    assert asked == [ours.admin.namespace]
    with LiveReader(user, space(ours)) as reader:
        reader.next("snapshot")
        assert listed(user, ours) == read and listed(user, ours, "?state=Created") == read
        version = label(ours, "ours", "1")
        assert reader.next("job").id == version
        assert listed(user, ours)["ours"]["resourceVersion"] == version
        assert len(asked) == 1, "all of these were told"
        listed(viewer, ours)
        assert len(asked) == 2, "another caller's stream is not theirs"
        assert listed(user, ours, "?labelSelector=n%3D1").keys() == {"ours"}
        assert len(asked) == 3, "a stream knows no labels"
        made = user.ask("POST", f"{ours.jobs}", job(name="mine"))
        assert made.status == 201, made
        assert listed(user, ours).keys() == {"mine", "ours"}
        assert len(asked) == 4, "just after a change of their own"
    listed(user, ours)
    assert len(asked) == 5, "the stream is closed"


def test_who_loses_the_right_gets_no_list_from_their_stream(
    port: int, ours: Team, theirs: Team, asked: list[str | None]
) -> None:
    user = Rest(port, ours.user.token)
    with LiveReader(user, space(ours)) as reader:
        reader.next("snapshot")
        foreign = user.ask("GET", f"/api/v1/namespaces/{theirs.admin.namespace}/jobs")
        assert foreign.status == 403
        listed(user, ours)
        Kubectl(ours.admin.spec, ours.admin.namespace)("delete", "rolebinding", "user")
        time.sleep(REVIEW)  # for as long as an answer about rights is believed
        path = f"/api/v1/namespaces/{ours.admin.namespace}/jobs"
        eventually("the list is refused", lambda: user.ask("GET", path).status == 403)
        ours.admin.create(f"{JOBS}/mpijobs", job(name="secret"))
        assert user.ask("GET", path).status == 403
    assert "secret" not in str([one.data for one in reader.heard])
