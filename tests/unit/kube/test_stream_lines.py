"""Lines come whole, however the stream was cut."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.kube.stream_lines import LineSplitter


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_cutting_changes_nothing(data: bytes, cuts: list[int]) -> None:
    split, places = LineSplitter(), [0, *sorted(cuts), len(data)]
    found = []
    for start, end in pairwise(places):
        found += split.feed(data[start:end])
    found.append(split.rest())
    assert b"\n".join(found) == data
    assert found == data.split(b"\n")


def test_a_line_that_never_ends_is_not_held_for_ever() -> None:
    split = LineSplitter(longest=10_000)
    given = [line for _ in range(100) for line in split.feed(b"x" * 1000)]
    assert {len(line) for line in given} == {11_000}
    given += [*split.feed(b"y\nz"), split.rest()]
    assert b"".join(given) == b"x" * 100_000 + b"yz"


def test_a_long_line_in_small_pieces_takes_time_in_proportion() -> None:
    """kopf#275: a line beyond the reader's buffer; joining at every piece would be quadratic."""
    split, piece = LineSplitter(), b"x" * 1000
    began = time.process_time()
    for _ in range(50_000):
        assert split.feed(piece) == []
    assert len(split.feed(b"\n")[0]) == 50_000_000
    assert time.process_time() - began < 2
