"""Lines of ranks, put together again on the launcher from what mpirun has marked (L-1)."""

from __future__ import annotations

import os
import time
from itertools import chain
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.layout.agent.python import lines
from mpi_trainer.layout.agent.python.lines import Clock, Lines, OpenMpiLines, hydra_lines
from mpi_trainer.layout.agent.python.relay import Padding

PREFIX = b"<1f2e3d4c."
WORD = b"\x1e9a8b7c6d-1234-1234-1234-123456789abc"
ROOM = 8192
Pieces = list[tuple[int, bytes]]


def marked(pieces: Pieces) -> bytes:
    return b"".join(b"%b%d>%b" % (PREFIX, rank, piece) for rank, piece in pieces)


def hydra() -> Lines:
    return hydra_lines(Clock(), PREFIX)


def through(data: bytes, size: int = 1 << 20, it: Lines | None = None) -> bytes:
    it = it or hydra()
    parts = [it.feed(data[at : at + size]) for at in range(0, len(data), size)]
    return b"".join([*parts, it.close()])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_line_waits_for_its_end_and_no_other_comes_between() -> None:
    pieces = [(0, b"one "), (1, b"two "), (0, b"half\n"), (10, b"ten\n"), (1, b"halves\n")]
    assert through(marked(pieces)) == b"one half\nten\ntwo halves\n"


def test_words_of_mpirun_itself_pass() -> None:
    data = b"before\n" + marked([(0, b"a\n")]) + b"\n=== BAD TERMINATION ===\n"
    assert through(data) == b"before\na\n\n=== BAD TERMINATION ===\n"


def test_what_only_looks_like_a_mark_passes() -> None:
    said = b"<1f2e3d4c.x> <1f2e3d4c.7 <1f2e3d4d.0>\n[1,0]<stdout>:<"
    assert through(marked([(3, said)])) == said


@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.binary() | st.sampled_from([b"\n", b"\r", b"<", b"a\nb"]))
    ),
    st.integers(1, 40),
)
def test_every_byte_of_every_rank_arrives_in_whole_lines(pieces: Pieces, size: int) -> None:
    wrote: dict[int, bytes] = {}
    for rank, piece in pieces:
        wrote[rank] = wrote.get(rank, b"") + piece
    it = hydra()
    data = marked(pieces)
    given = b"".join(it.feed(data[at : at + size]) for at in range(0, len(data), size))
    whole = sorted(line for text in wrote.values() for line in text.split(b"\n")[:-1])
    # What may be the beginning of a mark waits; it never holds a newline.
    assert sorted(given.split(b"\n")[:-1]) == whole
    assert given[-1:] in (b"", b"\n")
    rest = it.close()
    assert sorted(rest) == sorted(b"".join(text.split(b"\n")[-1] for text in wrote.values()))


def test_a_prompt_is_shown_after_a_silence(clock: list[float]) -> None:
    it = hydra()
    assert (it.wait(), it.feed(marked([(0, b"name? ")]))) == (None, b"")
    assert it.wait() == lines.SILENCE
    clock[0] += 1
    assert it.feed(marked([(1, b"line\n"), (0, b"please: ")])) == b"line\n"
    clock[0] += 1
    assert it.overdue() == b""
    clock[0] += 1
    assert (it.wait(), it.overdue(), it.wait()) == (0, b"name? please: ", None)
    assert it.feed(marked([(0, b"thanks\n")])) == b"thanks\n"


def test_a_progress_bar_that_is_never_silent_is_shown_all_the_same(clock: list[float]) -> None:
    it = hydra()
    shown = b""
    for number in range(50):
        shown += it.feed(marked([(0, b"\r%d %%" % number)])) + it.overdue()
        clock[0] += 0.1
    assert shown == b"".join(b"\r%d %%" % number for number in range(42))


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1000)
    monkeypatch.setattr(lines, "MOST", 3000)
    it = hydra()
    assert it.feed(marked([(0, b"x" * 1001)])) == b"x" * 1001
    held = [it.feed(marked([(rank, b"%d" % rank * 900)])) for rank in range(4)]
    assert held == [b"", b"", b"", b"0" * 900]
    assert it.close() == b"1" * 900 + b"2" * 900 + b"3" * 900


class OpenMpi4:
    """What it prints: a mark and a line each, of what it has read at once, as far as 8 KiB go."""

    def __init__(self) -> None:
        self.printed = b""
        self.dropped = 0

    def read(self, rank: int, block: bytes) -> None:
        mark = b"[1,%d]<stdout>:" % rank
        text = mark + block[:-1].replace(b"\n", b"\n" + mark) + block[-1:]
        self.dropped += max(0, len(text) - ROOM)
        self.printed += text[:ROOM]


def openmpi(*, marked: bool = False) -> Lines:
    return OpenMpiLines(Clock(), WORD, marked=marked)


def printed_by_openmpi4(pieces: Pieces, block: int = 4096) -> OpenMpi4:
    mpirun = OpenMpi4()
    paddings: dict[int, Padding] = {}
    for rank, piece in pieces:
        text = paddings.setdefault(rank, Padding(WORD)).padded(piece)
        for at in range(0, len(text), block):
            mpirun.read(rank, text[at : at + block])
    return mpirun


@pytest.mark.parametrize("line", [b"\n", b"1\n", b"x" * 30 + b"\n", b"]<\n", b"x" * 31 + b"\n"])
def test_no_line_is_too_short_for_open_mpi_4(line: bytes) -> None:
    mpirun = printed_by_openmpi4([(123456, line * 20000)])
    assert mpirun.dropped == 0
    assert through(mpirun.printed, it=openmpi()) == line * 20000
    unpadded = OpenMpi4()
    unpadded.read(0, b"1\n" * 2048)
    assert unpadded.dropped > 0


SAID = st.binary(max_size=60) | st.sampled_from(
    [
        b"\n",
        b"\n" * 200,
        b"]",
        b"<",
        b"]<",
        b"[1,0]<stdout>:",
        b"[1,",
        b"a\nb",
        WORD[:9],
        b"x\n" * 90,
    ]
)


@given(st.lists(st.tuples(st.integers(0, 12), SAID)), st.integers(1, 4096), st.integers(5, 600))
def test_every_byte_of_every_rank_of_open_mpi_4_arrives(
    pieces: Pieces, block: int, size: int
) -> None:
    wrote: dict[int, bytes] = {}
    for rank, piece in pieces:
        wrote[rank] = wrote.get(rank, b"") + piece
    mpirun = printed_by_openmpi4(pieces, block)
    whole = {rank: text.split(b"\n")[:-1] for rank, text in wrote.items()}
    rests = [text.split(b"\n")[-1] for text in wrote.values()]
    it, unmarked = openmpi(marked=True), openmpi()
    data = [mpirun.printed[at : at + size] for at in range(0, len(mpirun.printed), size)]
    given = b"".join(map(it.feed, data))
    assert mpirun.dropped == 0
    for rank in wrote:
        mark = b"[1,%d]<stdout>:" % rank
        mine = [line for line in given.split(b"\n")[:-1] if line.startswith(mark)]
        assert [line[len(mark) :] for line in mine] == whole[rank]
    assert given[-1:] in (b"", b"\n")
    lines_only = b"".join(map(unmarked.feed, data))
    assert sorted(lines_only.split(b"\n")[:-1]) == sorted(chain(*whole.values()))
    assert sorted(unmarked.close()) == sorted(b"".join(rests))


def test_words_of_open_mpi_4_itself_are_no_ranks() -> None:
    own = b"-----\nmpirun noticed that process rank 1 exited\n-----\n"
    mpirun = printed_by_openmpi4([(0, b"short\n")]).printed + own + b"[1,1]<stderr>:last"
    marked = b"[1,0]<stdout>:short\n" + own + b"[1,1]<stderr>:last"
    assert through(mpirun, it=openmpi(marked=True)) == marked
    assert through(mpirun, it=openmpi()) == b"short\n" + own + b"last"


def test_a_word_that_is_torn_by_a_silence_is_taken_out(clock: list[float]) -> None:
    it = openmpi(marked=True)
    assert it.feed(b"[1,0]<stdout>:ready? " + WORD[:20]) == b""
    clock[0] += 3
    assert it.overdue() == b"[1,0]<stdout>:ready? "
    clock[0] += 3
    assert it.overdue() == b""
    assert it.feed(b"[1,0]<stdout>:" + WORD[20:] + b"\n") == b"[1,0]<stdout>:\n"


def test_what_may_be_a_mark_is_shown_after_a_silence(clock: list[float]) -> None:
    it = openmpi()
    assert it.feed(b"[1,0]<stdout>:choose [") == b""
    assert it.wait() == lines.SILENCE
    clock[0] += 3
    assert it.overdue() == b"choose ["
    assert it.feed(b"[1,0]<stdout>:x\n") == b"x\n"


def test_a_reader_who_does_not_read_makes_no_line_late(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(_: int, data: memoryview) -> int:
        clock[0] += 100
        return len(data)

    time_ = Clock()
    it = OpenMpiLines(time_, WORD, marked=False)
    assert it.feed(b"[1,0]<stdout>:begun") == b""
    monkeypatch.setattr("os.write", slowly)
    time_.write(b"something")
    assert it.overdue() == b""
    clock[0] += 3
    assert it.overdue() == b"begun"


@pytest.mark.parametrize(
    ("kind", "printed", "joined"),
    [
        ("hydra", marked([(0, b"a"), (1, b"b\n"), (0, b"\n")]), b"b\na\n"),
        ("openmpi", b"[1,0]<stdout>:a" + WORD + b"\n", b"a\n"),
        ("openmpi-marked", b"[1,0]<stderr>:a" + WORD + b"\n", b"[1,0]<stderr>:a\n"),
    ],
)
def test_what_is_read_is_joined_until_its_end(
    kind: str, printed: bytes, joined: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt comes after a silence; a reader that has gone is no error."""
    monkeypatch.setattr(lines, "SILENCE", 0.1)
    (source, its), (reader, target) = os.pipe(), os.pipe()
    os.set_blocking(target, False)
    word = PREFIX if kind == "hydra" else WORD
    thread = Thread(target=lines.join, args=(kind, word, source, target), daemon=True)
    thread.start()
    os.write(its, printed)
    assert os.read(reader, 4096) == joined
    os.write(its, b"prompt")
    assert os.read(reader, 4096) == b"prompt"
    os.write(its, b"x" * 300_000 + b"\n")
    os.close(its)
    read = b""
    while len(read) < 300_001:
        read += os.read(reader, 1 << 20)
    assert read == b"x" * 300_000 + b"\n"
    thread.join(10)
    assert not thread.is_alive()
    for one in (source, reader, target):
        os.close(one)


def test_a_reader_that_has_gone_is_no_error() -> None:
    (source, its), (reader, target) = os.pipe(), os.pipe()
    os.close(reader)
    os.write(its, b"text\n")
    lines.join("hydra", PREFIX, source, target)
    for one in (source, its, target):
        os.close(one)
