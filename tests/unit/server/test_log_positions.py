"""Whoever comes back to a log gets every line once, wherever they left it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.sdk.backends.backend import LogLine
from mpi_trainer.server.live.log_positions import (
    MISSING,
    MOST_HELD,
    Places,
    PodPlace,
    Position,
    read,
    written,
)
from mpi_trainer.server.problems import Refused

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def line(number: int, milliseconds: int, pod: str = "pi-launcher", attempt: int = 1) -> LogLine:
    time = START + timedelta(milliseconds=milliseconds)
    return LogLine(time, pod, "stdout", 0, f"line {number}", attempt)


def again(lines: Sequence[LogLine], position: Position) -> list[LogLine]:
    """What a new reading from there gives."""
    places = Places("uid", position)
    since = position.since
    later = [one for one in lines if since is None or one.time >= since]
    return [new for one in later for new in places.take(one)] + places.rest()


def first(lines: Sequence[LogLine], number: int) -> Position:
    places = Places("uid")
    for one in lines[:number]:
        assert places.take(one) == [one]
    return read(written(places.now()))


@given(st.lists(st.integers(0, 900), max_size=40), st.integers(0, 40))
def test_no_line_is_lost_or_doubled_wherever_a_reader_leaves(gaps: list[int], left: int) -> None:
    """Also where many lines have one time, and where two streams are a little out of order."""
    at, lines = 0, []
    for number, gap in enumerate(gaps):
        at += gap
        pod = f"pi-worker-{number % 3}"
        lines.append(line(number, max(0, at - 300 * (number % 2)), pod))
    left = min(left, len(lines))
    assert again(lines, first(lines, left)) == lines[left:]


@given(st.integers(1, 30), st.integers(1, 30))
def test_who_leaves_twice_gets_every_line_too(one: int, two: int) -> None:
    lines = [line(n, 40 * n) for n in range(40)]
    places = Places("uid", first(lines, one))
    for each in lines[: one + two]:
        if each.time >= (first(lines, one).since or START):
            places.take(each)
    assert again(lines, read(written(places.now()))) == lines[min(one + two, 40) :]


def test_where_a_node_has_removed_lines_the_rest_is_given_and_it_is_said() -> None:
    lines = [line(n, 100 * n) for n in range(30)]
    position = first(lines, 20)
    found = again(lines[25:], position)
    assert [one.text for one in found] == [one.text for one in lines[25:]]
    assert found[0].notes == (MISSING,)
    assert again(lines[18:], position) == lines[20:], "the last one that was given is known"


def test_a_later_attempt_is_new_under_the_same_name() -> None:
    lines = [line(n, 10 * n) for n in range(5)] + [line(n, 60 + n, attempt=2) for n in range(5)]
    assert again(lines, first(lines, 5)) == lines[5:]
    assert again(lines, first(lines, 7)) == lines[7:]


@pytest.mark.parametrize("text", ["x", "====", "eJw", "e" * 20_000, "é"])
def test_a_position_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="go on from"):
        read(text)


def packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


@pytest.mark.parametrize(
    "made_up",
    [
        packed('["uid",{"1:pi-launcher":[1000000000000000000,1,1,1]}]'),
        packed('["uid",{"1:pi-launcher":[-99999999999999,1,1,1]}]'),
        packed('["uid",{' + ",".join(f'"{"a" * n}":[0,0,0,1]' for n in range(600)) + "}]"),
        packed('["uid",{},' + "[" * 10_000),
        written(Position("uid", {})) + "\n\nevent: job" * 2000,
    ],
)
def test_positions_that_somebody_made_up_are_refused(made_up: str) -> None:
    """All of a position is written anew with every batch of lines."""
    with pytest.raises(Refused, match="none of this stream's"):
        read(made_up)


def test_a_position_that_somebody_made_up_holds_little() -> None:
    place = PodPlace(int(START.timestamp()), MOST_HELD, 0, 1)
    places = Places("uid", Position("uid", {"1:pi-launcher": place}))
    long, came = "x" * (1 << 20), 0
    for number in range(40):
        one = msgspec.structs.replace(line(number, number), text=long)
        came += len(places.take(one))
        assert number - came < 17
    assert came + len(places.rest()) == 40
