"""Answers as servers and proxies cut them, over a real pair of sockets."""

from __future__ import annotations

import gzip
import socket
from contextlib import closing

import pytest

from mpi_trainer.kube.plainhttp import Answer, Broken, answered, asking

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def read(*pieces: bytes, end: bool = True) -> Answer:
    """What is made of these bytes."""
    ours, theirs = socket.socketpair()
    with closing(ours), closing(theirs):
        ours.settimeout(5)
        for piece in pieces:
            theirs.sendall(piece)
        if end:
            theirs.shutdown(socket.SHUT_WR)
        return answered(ours)


def test_a_body_of_known_length() -> None:
    found = read(HEAD + b"Content-Length: 2\r\n\r\n{}", end=False)
    assert (found.status, found.body, found.closes) == (200, b"{}", False)
    assert found.headers["content-type"] == "application/json"


def test_chunks_of_any_size() -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"
    assert read(HEAD + body, end=False).body == b"abc0123456789"


def test_a_body_until_the_end_closes_the_connection() -> None:
    found = read(HEAD + b"\r\n", b"ab", b"cd")
    assert (found.body, found.closes) == (b"abcd", True)


def test_a_compressed_body() -> None:
    packed = gzip.compress(b"x" * 1000)
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    assert read(head + packed).body == b"x" * 1000


def test_news_before_the_answer_are_passed_over() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert read(early + HEAD + b"Content-Length: 1\r\n\r\nx").body == b"x"


@pytest.mark.parametrize(
    "data",
    [
        HEAD,
        HEAD + b"Content-Length: 5\r\n\r\nabc",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        HEAD + b"X: " + b"y" * 200_000,
    ],
)
def test_half_an_answer_is_none(data: bytes) -> None:
    with pytest.raises(Broken):
        read(data)


def test_an_idle_connection_that_was_closed_is_known() -> None:
    with pytest.raises(Broken) as broken:
        read()
    assert broken.value.fresh


def test_no_text_of_a_user_makes_a_header() -> None:
    with pytest.raises(ValueError, match="end of a line"):
        asking("GET", "/", [("Impersonate-User", "a\r\nX: y")], b"")
