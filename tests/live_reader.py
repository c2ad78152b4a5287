"""A reader of server-sent events, as a browser is one: it keeps the last id, and can come back."""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
from contextlib import suppress
from typing import Any, Self

import msgspec

from tests.rest import Rest

LOOPBACK = "127.0.0.1"


class Heard(msgspec.Struct, frozen=True):
    event: str
    data: Any
    id: str = ""


class Ended(Exception):
    """The server ended the stream."""


class LiveReader:
    """Reads in a thread of its own; `heard` has all events so far."""

    def __init__(
        self, server: Rest, path: str, position: str = "", headers: dict[str, str] | None = None
    ) -> None:
        login = {"Authorization": f"Bearer {server.token}"} if server.token else {}
        place = {"Last-Event-ID": position} if position else {}
        self._connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=60)
        self._connection.request("GET", path, headers=login | place | (headers or {}))
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = dict(self._answer.getheaders())
        self.problem: Any = None
        self.heard: list[Heard] = []
        self.comments = 0
        self.position = position
        self.ended = threading.Event()
        self._new: queue.Queue[Heard | None] = queue.Queue()
        if self.status != 200:
            self.problem = json.loads(self._answer.read())
            self.ended.set()
            self._connection.close()
            return
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next(self, *names: str, seconds: float = 30.0) -> Heard:
        """The next event of one of these names; others before it are passed over."""
        while True:
            try:
                found = self._new.get(timeout=seconds)
            except queue.Empty:
                raise TimeoutError(f"no {names} in {seconds} s after {self.heard[-3:]}") from None
            if found is None:
                raise Ended(f"the stream ended after {self.heard[-3:]}")
            if not names or found.event in names:
                return found

    def close(self) -> None:
        if self.status != 200:
            return
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._connection.close()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        with suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            for raw in self._answer:
                line = raw.decode().rstrip("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                else:
                    self._take(fields)
                    fields = {}
        self.ended.set()
        self._new.put(None)

    def _take(self, fields: dict[str, str]) -> None:
        if "event" not in fields:
            return
        found = Heard(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
        self.position = found.id or self.position
        self.heard.append(found)
        self._new.put(found)
