"""Answers of REST whose readers do not read: what is held for them is bounded in time and size."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import cast

import pytest

from mpi_trainer.sdk.backends.backend import Backend, Key, LogLine, LogQuery
from mpi_trainer.server import sending
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Caller
from mpi_trainer.server.live.hub import LiveSettings
from tests.rest import Rest, served

LOGS = "/api/v1/namespaces/a/mpijobs/b/logs"
STALLED = 2.0
LINES = 400
SIZE = LINES * 4000 * 3


class Writer:
    """A job that has written some MiB."""

    name, namespace = "sim", "a"

    def of_kind(self, kind: str) -> Writer:
        return self

    async def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        for number in range(LINES):
            yield LogLine(datetime.now(UTC), "pod", "stdout", 0, f"{number} " + "€" * 4000)


class Named:
    """Callers by what their tokens say."""

    def caller(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        return Caller(headers["Authorization"].split()[1], cast(Backend, Writer()))


@pytest.fixture
def port() -> Iterator[int]:
    with served(Named(), Settings(live=LiveSettings(stalled=STALLED))) as found:
        yield found


def silent(port: int, left: ExitStack, token: str = "slow") -> socket.socket:
    """Somebody who asks for a log and takes nothing of it."""
    made = socket.socket()
    left.callback(made.close)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", port))
    head = f"Host: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    made.sendall(f"GET {LOGS} HTTP/1.1\r\n{head}\r\n".encode())
    return made


def taken(reader: socket.socket) -> int:
    """Bytes that come until the other side has closed."""
    reader.settimeout(30.0)
    size = 0
    with suppress(ConnectionError):
        while data := reader.recv(1 << 20):
            size += len(data)
    return size


def until(what: str, true: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_who_takes_nothing_of_an_answer_is_cut_off(port: int) -> None:
    with ExitStack() as left:
        assert taken(silent(port, left)) > SIZE
        reader = silent(port, left)
        time.sleep(STALLED + 3.0)
        assert taken(reader) < SIZE


def test_who_lets_answers_pile_up_gets_no_more_and_others_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "EACH", 10 * SIZE // 4)  # two of them
    patient = Settings(live=LiveSettings(stalled=60.0))
    with served(Named(), patient) as port, ExitStack() as left:
        slow = [silent(port, left) for _ in range(2)]
        mine = Rest(port, "slow")
        until("both are on their way", lambda: mine.ask("GET", LOGS).status == 429)
        refused = mine.ask("GET", LOGS)
        assert refused.data["type"].endswith(":busy") and refused.headers["Retry-After"]
        assert Rest(port, "other").ask("GET", LOGS).status == 200
        for one in slow:
            one.close()
        until("there is room again", lambda: mine.ask("GET", LOGS).status == 200)
