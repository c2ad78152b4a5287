"""Answers as servers and proxies cut them, over real sockets."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import Garbled, NotFound, Unreachable
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.requests import Request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ASK = Request("GET", "/api/v1/x", tries=1, timeout=5)
WRITE = Request("POST", "/api/v1/x", body=b"{}", content_type="application/json", tries=1)


class Scripted:
    """A server that answers each connection's requests with these bytes, then closes it."""

    def __init__(self, *connections: tuple[bytes, ...]) -> None:
        self._connections = connections
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.seen: list[bytes] = []
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answers in self._connections:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(5)
                for answer in answers:
                    if data := peer.recv(1 << 16):
                        self.seen.append(data)
                        peer.sendall(answer)
            self.closed.set()

    def close(self) -> None:
        self._listening.close()
        self._thread.join(5)


@contextmanager
def serving(
    *connections: tuple[bytes, ...], **config: object
) -> Iterator[tuple[OneShot, Scripted]]:
    server = Scripted(*connections)
    found = Config(f"http://127.0.0.1:{server.port}")
    try:
        with OneShot(msgspec.structs.replace(found, **config)) as client:
            yield client, server
    finally:
        server.close()


def read(answer: bytes) -> bytes:
    with serving((answer,)) as (client, _):
        return client.fetch(ASK)


def test_a_body_of_known_length() -> None:
    assert read(HEAD + b"Content-Length: 2\r\n\r\n{}") == b"{}"


def test_chunks_of_any_size() -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"
    assert read(HEAD + body) == b"abc0123456789"


def test_a_body_until_the_end_closes_the_connection() -> None:
    with serving((HEAD + b"\r\nabcd",), (HEAD + b"Content-Length: 1\r\n\r\nx",)) as (client, _):
        assert client.fetch(ASK) == b"abcd"
        assert client.fetch(ASK) == b"x"


def test_a_compressed_body() -> None:
    packed = gzip.compress(b"x" * 1000)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    assert read(head + packed) == b"x" * 1000
    with pytest.raises(Garbled):
        read(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd")


def test_a_hundred_before_the_answer_is_passed_over() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert read(early + HEAD + b"Content-Length: 1\r\n\r\nx") == b"x"


@pytest.mark.parametrize(
    "data",
    [
        HEAD,
        HEAD + b"Content-Length: 5\r\n\r\nabc",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        HEAD + b"X: " + b"y" * 200_000,
    ],
)
def test_half_an_answer_is_none(data: bytes) -> None:
    with pytest.raises((Unreachable, Garbled)) as caught, serving((data,)) as (client, _):
        client.call(WRITE)
    assert not isinstance(caught.value, Unreachable) or caught.value.sent


def test_one_connection_serves_many_requests() -> None:
    answer = HEAD + b"Content-Length: 2\r\n\r\n{}"
    with serving((answer, answer, answer)) as (client, server):
        for _ in range(3):
            client.fetch(ASK)
        assert len(server.seen) == 3


def test_an_idle_connection_that_was_closed_is_opened_again_also_for_a_write() -> None:
    """A write is sent once only, so this must be seen before it is sent."""
    answer = HEAD + b"Content-Length: 2\r\n\r\n{}"
    with serving((answer,), (answer,)) as (client, server):
        client.fetch(WRITE)
        assert server.closed.wait(5)
        client.fetch(WRITE)
        assert len(server.seen) == 2


def test_a_refusal_is_the_servers_own() -> None:
    body = b'{"kind":"Status","reason":"NotFound","message":"no such thing","code":404}'
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body)
    with pytest.raises(NotFound, match="no such thing"):
        read(head + body)


def test_no_text_of_a_user_makes_a_header_and_no_message_shows_it() -> None:
    bad = (("Impersonate-User", "secret\r\nX: y"),)
    match = "Impersonate-User holds the end of a line"
    with (
        serving((HEAD,), impersonation=bad) as (client, _),
        pytest.raises(ValueError, match=match) as caught,
    ):
        client.fetch(ASK)
    assert "secret" not in str(caught.value)


def test_every_impersonated_group_is_sent() -> None:
    groups = (("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
    with serving((HEAD + b"Content-Length: 0\r\n\r\n",), impersonation=groups) as (client, server):
        client.fetch(ASK)
    assert server.seen[0].count(b"Impersonate-Group: ") == 2


def test_a_proxy_that_refuses_has_not_seen_the_request() -> None:
    answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    proxy = Scripted((answer,))
    config = Config("http://inside.example:80", proxy=f"http://me:pass@127.0.0.1:{proxy.port}")
    with OneShot(config) as client, pytest.raises(Unreachable, match="the proxy refuses") as caught:
        client.fetch(WRITE)
    proxy.close()
    assert not caught.value.sent
    assert "pass" not in str(caught.value)
    assert proxy.seen[0].startswith(b"CONNECT inside.example:80 HTTP/1.")
    assert b"Proxy-Authorization: Basic bWU6cGFzcw==" in proxy.seen[0]
