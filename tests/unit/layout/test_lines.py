"""Lines of ranks, put together again on the launcher from what mpirun has marked (L-1)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.layout.agent.python import lines
from mpi_trainer.layout.agent.python.lines import Lines

PREFIX = b"<1f2e3d4c."
Pieces = list[tuple[int, bytes]]


def marked(pieces: Pieces) -> bytes:
    return b"".join(b"%b%d>%b" % (PREFIX, rank, piece) for rank, piece in pieces)


def through(data: bytes, size: int = 1 << 20) -> bytes:
    it = Lines(PREFIX)
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
    it = Lines(PREFIX)
    data = marked(pieces)
    given = b"".join(it.feed(data[at : at + size]) for at in range(0, len(data), size))
    whole = sorted(line for text in wrote.values() for line in text.split(b"\n")[:-1])
    # What may be the beginning of a mark waits; it never holds a newline.
    assert sorted(given.split(b"\n")[:-1]) == whole
    assert given[-1:] in (b"", b"\n")
    rest = it.close()
    assert sorted(rest) == sorted(b"".join(text.split(b"\n")[-1] for text in wrote.values()))


def test_a_prompt_is_shown_after_a_silence(clock: list[float]) -> None:
    it = Lines(PREFIX)
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
    it = Lines(PREFIX)
    shown = b""
    for number in range(50):
        shown += it.feed(marked([(0, b"\r%d %%" % number)])) + it.overdue()
        clock[0] += 0.1
    assert shown == b"".join(b"\r%d %%" % number for number in range(42))


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1000)
    monkeypatch.setattr(lines, "MOST", 3000)
    it = Lines(PREFIX)
    assert it.feed(marked([(0, b"x" * 1001)])) == b"x" * 1001
    held = [it.feed(marked([(rank, b"%d" % rank * 900)])) for rank in range(4)]
    assert held == [b"", b"", b"", b"0" * 900]
    assert it.close() == b"1" * 900 + b"2" * 900 + b"3" * 900
