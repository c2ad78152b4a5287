"""Bytes of a pod become lines, each with its rank."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.diagnose.rank_lines import LONGEST, Line, RankLines
from mpi_trainer.layout.mpi import REGISTRY, MpiImpl


def lines(*pieces: bytes) -> list[Line]:
    stream = RankLines("pod", "launcher", "stdout")
    return [line for piece in pieces for line in stream.feed(piece)] + stream.close()


def texts(*pieces: bytes) -> list[str]:
    return [line.text for line in lines(*pieces)]


def test_a_line_is_given_out_when_it_ends_and_the_rest_when_the_stream_closes() -> None:
    stream = RankLines("pod", "launcher", "stdout")
    assert [line.text for line in stream.feed(b"one\ntw")] == ["one"]
    assert [line.text for line in stream.feed(b"o\n\nrest")] == ["two", ""]
    assert [line.text for line in stream.close()] == ["rest"]
    assert stream.close() == []


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=4))
def test_it_does_not_matter_how_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert lines(*pieces) == lines(data)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"[1,3]<stdout>: hello", Line("pod", "launcher", "stdout", 3, "hello")),
        (b"[1,3]<stdout>:hello", Line("pod", "launcher", "stdout", 3, "hello")),
        (b"[prterun-x@1,12]<stdout>: a", Line("pod", "launcher", "stdout", 12, "a")),
        (b"[1,3] no mark", Line("pod", "launcher", "stdout", None, "[1,3] no mark")),
        (b"[0] not one of ours", Line("pod", "launcher", "stdout", None, "[0] not one of ours")),
    ],
)
def test_a_mark_says_the_rank_and_is_taken_off(data: bytes, line: Line) -> None:
    assert lines(data) == [line]


def test_pieces_of_several_ranks_in_one_line_are_put_together_again() -> None:
    """As MPICH, Intel MPI and Open MPI 4 write what ranks print unbuffered."""
    found = lines(
        b"[1,2]<stdout>:hello[1,0]<stdout>:hello[1,0]<stdout>: 0\n",
        b"[1,2]<stdout>: 2\n[1,0]<stdout>:tail",
    )
    assert [(line.rank, line.text) for line in found] == [
        (0, "hello 0"),
        (2, "hello 2"),
        (0, "tail"),
    ]


def test_a_space_belongs_to_the_mark_only_where_every_mark_has_one() -> None:
    five = lines(b"[1,0]<stdout>: a\n[1,0]<stdout>:  indented\n")
    assert [line.text for line in five] == ["a", " indented"]
    four = lines(b"[1,0]<stdout>:a\n[1,0]<stdout>: indented\n")
    assert [line.text for line in four] == ["a", " indented"]


def test_the_zero_byte_that_closes_a_stream_is_no_line() -> None:
    """As Open MPI 5 writes it when a rank has aborted."""
    assert texts(b"[1,1]<stderr>: x\n[1,1]<stderr>: \0[1,3]<stderr>: \0") == ["x"]


def test_a_mark_with_nothing_behind_it_is_no_line() -> None:
    assert texts(b"[1,0]<stdout>: a\n[1,0]<stdout>: ") == ["a"]


@pytest.mark.parametrize("impl", REGISTRY, ids=lambda impl: impl.name)
def test_the_mark_that_hydra_is_told_to_write_is_one(impl: MpiImpl) -> None:
    _, _, pattern = impl.tag_option.partition("=")
    if pattern:
        assert lines(pattern.replace("%r", "7").encode() + b"x")[0].rank == 7


def test_an_endless_unfinished_line_does_not_grow_for_ever() -> None:
    piece = b"[1,0]<stdout>:" + b"x" * 4000 + b"[1,1]<stdout>:y\n"
    found = lines(*[piece] * 40)
    assert max(len(line.text) for line in found) <= LONGEST + 4000


def test_what_is_held_for_all_ranks_together_is_bounded() -> None:
    """A program can write the mark of any rank before whatever it likes."""
    stream, most = RankLines("pod", "launcher", "stdout", held=100_000), 0
    given: list[Line] = []
    for rank in range(1, 500):
        given += stream.feed(b"[1,%d]<stdout>:" % rank + b"x" * 1000 + b"[1,0]<stdout>:y\n")
        most = max(most, sum(map(len, stream._begun.values())))
    given += stream.close()
    assert most <= 101_000
    assert {line.rank for line in given if line.text == "x" * 1000} == {*range(1, 500)}
    assert len(given) == 2 * 499


def test_a_long_line_is_given_out_in_pieces_that_keep_their_rank() -> None:
    long = b"x" * (2 * LONGEST)
    found = lines(b"[1,3]<stdout>: ", long, b"y\n[1,4]<stdout>: next\n")
    assert "".join(line.text for line in found[:-1]) == long.decode() + "y"
    assert {line.rank for line in found[:-1]} == {3}
    assert found[-1] == Line("pod", "launcher", "stdout", 4, "next")
    assert all(len(line.text) <= LONGEST for line in found)


def test_a_mark_is_never_cut() -> None:
    found = lines(b"x" * (LONGEST - 3) + b"[1,9]<std", b"out>:y\n")
    assert found[-1] == Line("pod", "launcher", "stdout", 9, "y")


def test_a_cut_does_not_break_a_character() -> None:
    text = "é" * LONGEST
    found = lines(b"a" + text.encode()[:-1], text.encode()[-1:] + b"\n")
    assert "".join(line.text for line in found) == "a" + text


def test_a_line_that_ends_where_it_was_cut_has_no_empty_piece() -> None:
    stream = RankLines("pod", "launcher", "stdout")
    stream.feed(b"x" * (LONGEST + 1))
    assert [line.text for line in stream.feed(b"\n\n")] == ["x", ""]


def test_bytes_that_are_not_text_are_replaced() -> None:
    assert texts(b"a\xffb\n") == ["a\ufffdb"]


def test_line_ends_of_other_systems_and_zero_bytes_are_taken_off() -> None:
    assert texts(b"one\r\n\0two\0\n") == ["one", "two"]


NOISE = b"[h:1] plm:ssh: Warning: setpgid(7,7) failed in parent with errno=Permission denied(13)"


def test_the_launchers_chance_warning_is_left_out() -> None:
    assert texts(NOISE + b"\nreal\n") == ["real"]


def test_what_a_rank_says_is_never_left_out() -> None:
    assert len(lines(b"[1,0]<stdout>: " + NOISE + b"\n")) == 1


def test_a_line_of_ten_megabytes_is_one_line_however_it_was_marked() -> None:
    """L-1: MPICH marks every piece that it reads, Open MPI the line."""
    size = 10_000_000
    whole = b"[1,0]<stdout>: " + b"x" * size + b"\n"
    once = [whole[i : i + 65536] for i in range(0, len(whole), 65536)]
    often = [b"[1,0]<stdout>:" + b"x" * 4096 for _ in range(size // 4096)]
    assert [(line.rank, len(line.text)) for line in lines(*once)] == [(0, size)]
    found = lines(*often, b"[1,0]<stdout>:y\n")
    assert [(line.rank, len(line.text)) for line in found] == [(0, size // 4096 * 4096 + 1)]


def test_the_zero_bytes_of_a_rank_stay_and_those_of_prterun_go() -> None:
    found = lines(b"[1,0]<stdout>: a\0b\nhelp text\n\0\0[1,1]<stdout>: c\n")
    assert [(line.rank, line.text) for line in found] == [
        (0, "a\0b"),
        (None, "help text"),
        (1, "c"),
    ]


EVENT = b"mpi-agent| 1731880000 job-worker-0 end rank=1 signal=11\n"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"[1,0]<stderr>: hel" + EVENT + b"lo\n", [(0, "hello")]),
        (b"[1,1]<stderr>: " + EVENT + b"[1,0]<stderr>: hello\n", [(0, "hello")]),
        (EVENT + EVENT + b"[1,0]<stderr>: hello\n", [(0, "hello")]),
        (b"[1,1]<stderr>: mpi-agent: rank 1 failed\n", [(None, "mpi-agent: rank 1 failed")]),
        (b"[1,1]<stderr>: \0[1,3]<stderr>: \0mpi-agent: so\n", [(None, "mpi-agent: so")]),
        (b"[1,1]<stderr>: see mpi-agent: x\n", [(1, "see mpi-agent: x")]),
    ],
)
def test_no_line_of_the_agent_is_a_ranks(data: bytes, found: list[tuple[int | None, str]]) -> None:
    """L-4: they come between what a rank has begun and its end, and behind a mark that is empty."""
    assert [(line.rank, line.text) for line in lines(data)] == found


def test_long_lines_of_two_ranks_that_share_one_are_not_torn() -> None:
    """Each is within the bound, both together are not: MPICH writes them as one line."""
    stream = RankLines("job-launcher", "launcher", "stdout")
    given = []
    for _ in range(180):
        for rank in (0, 1):
            given += stream.feed(b"[1,%d]<stdout>:" % rank + b"x" * 50_000)
    given += stream.feed(b"\n[1,0]<stdout>:end\n[1,1]<stdout>:\n")
    found = sorted((line.rank or 0, len(line.text)) for line in given if line.text)
    assert found == [(0, 9_000_003), (1, 9_000_000)]


def test_a_line_that_ends_where_that_of_several_ranks_was_cut_is_not_lost() -> None:
    stream = RankLines("job-launcher", "launcher", "stdout")
    given = stream.feed(b"[1,0]<stdout>:" + b"x" * 9_000_000)
    last = b"[1,1]<stdout>:" + b"y" * (LONGEST + 1 - 9_000_028)
    given += stream.feed(last)
    given += stream.feed(b"\n")
    given += stream.close()
    assert sum(len(line.text) for line in given) == LONGEST + 1 - 28


@pytest.mark.parametrize("line", ["[1,%s]<stdout>: x" % ("9" * 5000), "[" * 200_000])
def test_a_program_can_print_what_looks_like_a_mark(line: str) -> None:
    """A server reads the logs of many: a line of a megabyte took an hour, and one number an end."""
    (found,) = RankLines("p", "launcher", "stdout").feed(line.encode() + b"\n")
    assert (found.rank, found.text) == (None, line)
