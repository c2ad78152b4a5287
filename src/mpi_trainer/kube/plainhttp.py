"""HTTP/1.1 over one connection, as much of it as an API server speaks, and nothing imported for it.

The standard library's client brings a mail parser along, which costs a short command more than its
request does. Guarantee: an answer comes whole or not at all; one that breaks off, is no HTTP, or is
larger than `LARGEST` raises `Broken`. Danger: no redirects, no trailers, no answers to HEAD.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Final, NamedTuple

LARGEST: Final = 1 << 30
_HEAD: Final = 1 << 17
_CHUNK: Final = 1 << 16


class Broken(OSError):
    """The connection gave no whole answer. `fresh`: not one byte of it."""

    def __init__(self, why: str, *, fresh: bool = False) -> None:
        super().__init__(why)
        self.fresh = fresh


class Answer(NamedTuple):
    """`closes`: the server will not take another request on this connection."""

    status: int
    headers: dict[str, str]
    body: bytes
    closes: bool


def asking(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    """A request as bytes; whatever could end a header before its time is refused."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if any(c in line for line in lines for c in "\r\n\0"):
        raise ValueError("a header holds the end of a line; check the configuration")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + body


def answered(connection: socket.socket) -> Answer:
    """Reads one answer to its end."""
    reader = _Reader(connection)
    while True:
        status, headers = _head(reader.until(b"\r\n\r\n"))
        if status >= 200:
            break
    closes = headers.get("connection", "").lower() == "close"
    if status in (204, 304):
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        body = _chunks(reader)
    elif "content-length" in headers:
        body = reader.exactly(_number(headers["content-length"], 10))
    else:
        body, closes = reader.rest(), True
    if headers.get("content-encoding") == "gzip":
        import zlib

        body = zlib.decompress(body, wbits=31)
    return Answer(status, headers, body, closes)


def tunnelled(connection: socket.socket) -> int:
    """A proxy's status for a CONNECT; the connection is the other side's from then on."""
    return _head(_Reader(connection, greedy=False).until(b"\r\n\r\n"))[0]


def _head(data: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = data.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise Broken("the answer is not HTTP")
    pairs = (line.partition(":") for line in lines if line)
    return _number(rest[:3], 10), {name.lower(): value.strip() for name, _, value in pairs}


def _chunks(reader: _Reader) -> bytes:
    parts = []
    total = 0
    while size := _number(reader.until(b"\r\n").partition(b";")[0].decode("latin-1"), 16):
        total += size
        if total > LARGEST:
            raise Broken("the answer is too large")
        parts.append(reader.exactly(size))
        reader.until(b"\r\n")
    while reader.until(b"\r\n"):
        pass
    return b"".join(parts)


def _number(text: str, base: int) -> int:
    try:
        return int(text.strip(), base)
    except ValueError:
        raise Broken(f"the answer is not HTTP: {text[:20]!r} is no number") from None


class _Reader:
    """`greedy` reads ahead, which may not be done where the next bytes are another's."""

    def __init__(self, connection: socket.socket, *, greedy: bool = True) -> None:
        self._connection = connection
        self._buffer = bytearray()
        self._piece = _CHUNK if greedy else 1

    def until(self, end: bytes) -> bytes:
        """What comes before `end`, which is taken off too."""
        looked = 0
        while (at := self._buffer.find(end, max(looked - len(end), 0))) < 0:
            looked = len(self._buffer)
            if looked > _HEAD:
                raise Broken("the answer's head is too large")
            self._more()
        found = bytes(self._buffer[:at])
        del self._buffer[: at + len(end)]
        return found

    def exactly(self, count: int) -> bytes:
        if count > LARGEST:
            raise Broken("the answer is too large")
        while len(self._buffer) < count:
            self._more()
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def rest(self) -> bytes:
        while data := self._connection.recv(_CHUNK):
            self._buffer += data
        return bytes(self._buffer)

    def _more(self) -> None:
        data = self._connection.recv(self._piece)
        if not data:
            why = "it was closed before the answer was whole"
            raise Broken(why, fresh=not self._buffer)
        self._buffer += data
