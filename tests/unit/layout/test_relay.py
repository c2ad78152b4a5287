"""The copier beside a rank of Open MPI 4: what it hands on, and when it ends."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from mpi_trainer.layout.agent.python import relay
from mpi_trainer.layout.agent.python.relay import Stream

WORD = b"\x1e9a8b7c6d-1234-1234-1234-123456789abc"


class Copier:
    """One, between descriptors of this process; `read` are what Open MPI reads."""

    def __init__(self, folder: Path) -> None:
        self.ended, self.drained = folder / "ended", folder / "drained"
        for path in (self.ended, self.drained):
            os.mkfifo(path)
        self.read = [0, 0]
        targets = [0, 0]
        self.read[0], targets[0] = os.openpty()
        self.read[1], targets[1] = os.pipe()
        self.streams = [Stream(target, WORD) for target in targets]
        self.given = [stream.given for stream in self.streams]
        self.pipes = (
            os.open(self.ended, os.O_RDONLY | os.O_NONBLOCK),
            os.open(self.drained, os.O_RDWR),
        )
        self.thread = Thread(target=relay.copy, args=(self.streams, *self.pipes), daemon=True)

    def close(self) -> None:
        for one in (*self.read, *self.given):
            relay._close(one)


@pytest.fixture
def copier(tmp_path: Path) -> Iterator[Copier]:
    one = Copier(tmp_path)
    yield one
    one.close()


def came(source: int) -> bytes:
    assert select.select([source], [], [], 10)[0]
    return os.read(source, 4096)


def test_both_outputs_go_on_padded_until_nobody_can_write(copier: Copier) -> None:
    """A terminal for the one and a pipe for the other, as Open MPI has them."""
    assert [os.isatty(one) for one in copier.given] == [True, False]
    copier.thread.start()
    for given, source in zip(copier.given, copier.read, strict=True):
        os.write(given, b"\xff\0 half")
        assert came(source) == b"\xff\0 half"
        os.write(given, b" line\n")
        assert came(source).replace(b"\r", b"") == b" line" + WORD + b"\n"
        os.close(given)
    copier.thread.join(10)
    assert not copier.thread.is_alive()


def test_it_ends_when_nobody_reads(copier: Copier) -> None:
    copier.thread.start()
    for source in copier.read:
        os.close(source)
    copier.thread.join(10)
    assert not copier.thread.is_alive()
    with pytest.raises(OSError, match="Input/output error"):
        os.write(copier.given[0], b"text")


def test_all_that_a_rank_wrote_has_gone_on_when_it_says_so(copier: Copier) -> None:
    """Though somebody can still write."""
    os.write(copier.given[0], b"last\n")
    reader = os.open(copier.drained, os.O_RDONLY | os.O_NONBLOCK)
    os.close(os.open(copier.ended, os.O_RDWR))
    copier.thread.start()
    assert select.select([reader], [], [], 10)[0]
    assert os.read(reader, 1) == b""
    assert came(copier.read[0]).startswith(b"last" + WORD)
    os.write(copier.given[0], b"later\n")
    assert came(copier.read[0]).startswith(b"later" + WORD)
    os.close(reader)


def test_it_outlives_the_rank_and_holds_nothing_of_it(copier: Copier) -> None:
    mine, its = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            relay.detach(copier.streams, *copier.pipes)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(its)
    assert select.select([mine], [], [], 10)[0]
    assert os.read(mine, 1) == b""
    os.close(mine)
    os.write(copier.given[1], b"text\n")
    assert came(copier.read[1]) == b"text" + WORD + b"\n"


def test_it_ignores_what_ends_the_rank_and_closes_what_is_the_ranks(
    copier: Copier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same within this process, which is not left."""
    done: list[str] = []
    closed: list[int] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "setsid", lambda: done.append("setsid"))
    monkeypatch.setattr(os, "fork", lambda: done.append("fork"))
    monkeypatch.setattr(relay, "_close", closed.append)
    monkeypatch.setattr(
        f"{relay.__name__}.signal.signal",
        lambda number, _: done.append(signal.Signals(number).name),
    )
    monkeypatch.setattr(relay, "copy", lambda *_: done.append("copy"))
    relay.detach(copier.streams, *copier.pipes)
    ignored = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE"]
    assert done == ["setsid", "fork", *ignored, "copy"]
    assert {0, *copier.given} <= {*closed}
    kept = {*copier.pipes, *(one for s in copier.streams for one in (s.source, s.target))}
    assert not kept & {*closed}


class Became(Exception):
    pass


def test_the_rank_writes_to_its_copier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[object, ...]] = []
    for name in ("ended", "drained"):
        os.mkfifo(tmp_path / name)
    monkeypatch.setattr(os, "fork", lambda: 7)
    monkeypatch.setattr(os, "waitpid", lambda *which: done.append(which))
    monkeypatch.setattr(os, "dup2", lambda *which: done.append(which))
    monkeypatch.setattr(relay, "become", lambda *words: done.append(words))
    paths = [os.fsencode(tmp_path / name) for name in ("ended", "drained")]
    relay.run(WORD, *paths, b"/rank", b"app")
    first, (out, one), (err, two), last = done
    assert (first, one, two, last) == ((7, 0), 1, 2, (b"/rank", b"app"))
    assert out != err
    assert not os.get_inheritable(int(str(out)))


def test_the_program_has_the_environment_that_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not Python's own, which adds to it; also where there can be no copier, which is told."""
    started: list[tuple[bytes, list[bytes], dict[bytes, bytes]]] = []

    def execve(path: bytes, words: list[bytes], env: dict[bytes, bytes]) -> None:
        started.append((path, words, env))
        raise Became

    told: list[bytes] = []
    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(os, "write", lambda _, data: told.append(data))
    monkeypatch.setenv("SET_BY_PYTHON", "1")
    before = signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGXFSZ)
    with pytest.raises(Became):
        relay.run(WORD, os.fsencode(tmp_path / "none"), b"none", b"/rank", b"app", b"\xff")
    signal.signal(signal.SIGPIPE, before[0])
    signal.signal(signal.SIGXFSZ, before[1])
    ((path, words, env),) = started
    assert (path, words[1:]) == (b"/bin/sh", [b"-c", b'exec "$@"', b"/rank", b"app", b"\xff"])
    assert b"SET_BY_PYTHON" not in env
    assert env[b"PATH"]
    assert told[0].startswith(b"mpi-agent: Open MPI 4 may drop short lines of this rank: ")
