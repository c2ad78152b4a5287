"""Who may read the metrics: answers are kept for a while, in a bounded number, without tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Unreachable
from mpi_trainer.kube.requests import Request
from mpi_trainer.runtime.metrics_server import (
    AT_ONCE,
    KEPT,
    Access,
    AccessReview,
    AccessStatus,
    asked_by_us,
)
from mpi_trainer.runtime.token_reviews import (
    PROVEN_SECONDS,
    REFUSED_SECONDS,
    TokenReview,
    TokenStatus,
    User,
)


class Cluster:
    """Knows the token `good` of a reader and `known` of somebody else."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        self.down = False
        self.at_once = 0
        self.most = 0
        self.slow = asyncio.Event()
        """where nobody has set it, tokens that nobody knows take as long as that"""
        self.slow.set()

    async def call(self, request: Request, kind: Any) -> Any:
        self.sent.append(request)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        if b'"good"' not in request.body and b'"reader"' not in request.body:
            await self.slow.wait()
        self.at_once -= 1
        if self.down:
            raise Unreachable(request, "connect", "no connection")
        if kind is TokenReview:
            known = any(token in request.body for token in (b'"good"', b'"known"'))
            name = "reader" if b'"good"' in request.body else "other"
            return TokenReview(TokenStatus(known, User(name)))
        return AccessReview(AccessStatus(b'"reader"' in request.body))


def access(now: Sequence[float] = (1000.0,)) -> tuple[Access, Cluster]:
    """`now` is a clock that the test can set."""
    cluster = Cluster()
    return Access(asked_by_us(cast("Client", cluster)), lambda: now[0]), cluster


def judged(one: Access, *headers: str) -> list[int]:
    async def all_of_them() -> list[int]:
        return [await one.judge(header) for header in headers]

    return asyncio.run(all_of_them())


def test_what_is_no_token_is_refused_without_asking() -> None:
    one, cluster = access()
    wrong = ("", "Bearer", "Bearer  ", "Basic x", "Bearer \udcff", "Bearer \u00fc")
    assert judged(one, *wrong) == [401] * len(wrong)
    assert cluster.sent == []


def test_answers_are_kept_for_a_while() -> None:
    clock = [1000.0]
    one, cluster = access(clock)
    headers = ("Bearer good", "bearer known", "Bearer wrong")
    assert judged(one, *headers, *headers) == [200, 403, 401] * 2
    assert len(cluster.sent) == 5, "two reviews each, but one for a token that nobody knows"
    clock[0] += REFUSED_SECONDS + 0.1
    assert judged(one, *headers) == [200, 403, 401]
    assert len(cluster.sent) == 8
    clock[0] += PROVEN_SECONDS
    judged(one, "Bearer good")
    assert len(cluster.sent) == 10


def test_a_flood_of_tokens_is_bounded_and_pushes_no_reader_out() -> None:
    one, cluster = access()
    judged(one, "Bearer good")
    judged(one, *(f"Bearer wrong-{number}" for number in range(3 * KEPT)))
    assert len(one._reviews._refused) == KEPT
    asked = len(cluster.sent)
    assert judged(one, "Bearer good") == [200]
    assert len(cluster.sent) == asked
    assert "good" not in repr((one, vars(one), vars(one._reviews)))

    async def at_once() -> list[int]:
        return list(await asyncio.gather(*(one.judge(f"Bearer x{n}") for n in range(500))))

    statuses = asyncio.run(at_once())
    assert cluster.most <= AT_ONCE
    assert set(statuses) == {401, 503}


def test_a_reader_known_from_before_is_not_kept_out_by_strangers() -> None:
    """Anybody who reaches the port can send tokens that the API server has to look at."""
    clock = [1000.0]
    one, cluster = access(clock)
    judged(one, "Bearer good")
    clock[0] += PROVEN_SECONDS + 1

    async def crowded() -> tuple[int, int]:
        cluster.slow = asyncio.Event()
        strangers = [asyncio.create_task(one.judge(f"Bearer x{n}")) for n in range(100)]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            known, stranger = await one.judge("Bearer good"), await one.judge("Bearer y")
        cluster.slow.set()
        await asyncio.gather(*strangers)
        return known, stranger

    assert asyncio.run(crowded()) == (200, 503)
    assert cluster.most <= 2 * AT_ONCE


def test_no_answer_means_no_and_is_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    one, cluster = access()
    cluster.down = True
    assert judged(one, "Bearer good") == [503]
    assert "cannot tell who may read" in caplog.text and "good" not in caplog.text
    cluster.down = False
    assert judged(one, "Bearer good") == [200]
