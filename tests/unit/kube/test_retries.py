"""What is sent again, and when."""

from __future__ import annotations

import msgspec
import pytest

from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import KubeError, NotFound, Status, Unreachable, from_answer
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import PODS
from mpi_trainer.kube.retries import wait_before

READ = requests.get(PODS, "n", "p")
WRITE = requests.create(PODS, "n", {})


def answer(code: int, retry_after: str = "") -> KubeError:
    return from_answer(READ, code, b"", retry_after)


def broken(what: str) -> KubeError:
    return Unreachable(READ, what, "why")


@pytest.mark.parametrize(
    ("request_", "error", "again"),
    [
        (READ, answer(429), True),
        (WRITE, answer(429), True),
        (READ, answer(500), True),
        (WRITE, answer(500), False),
        (WRITE, answer(503, "1"), False),
        (READ, answer(501), False),
        (READ, broken("broken"), True),
        (WRITE, broken("broken"), False),
        (READ, broken("time-out"), False),
        (READ, broken("connect"), False),
        (READ, NotFound(READ, Status(404)), False),
        (READ, answer(403), False),
        (msgspec.structs.replace(WRITE, safe=True), answer(500), True),
    ],
)
def test_only_what_can_do_no_harm_is_sent_again(
    request_: Request, error: KubeError, again: bool
) -> None:
    assert (wait_before(request_, error, 1, 0.5) is not None) == again


def test_the_servers_wish_is_a_lower_bound() -> None:
    for chance in (0.0, 0.5, 0.999):
        wait = wait_before(READ, answer(429, "4"), 1, chance)
        assert wait is not None
        assert 4 <= wait <= 5.01


def test_a_wish_beyond_the_limit_is_not_granted() -> None:
    assert wait_before(READ, answer(429, "31"), 1, 0.0) is None


def test_waits_grow_and_are_spread_and_end() -> None:
    request = msgspec.structs.replace(READ, tries=9)
    waits = [wait_before(request, answer(500), tried, 0.5) for tried in range(1, 10)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, None]
    assert wait_before(request, answer(500), 1, 0.0) == 0.125
