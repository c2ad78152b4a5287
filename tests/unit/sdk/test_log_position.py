"""Resuming a log: whatever breaks wherever, each line is given once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.sdk.backends.cluster.log_position import LogPosition

START = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
steps = st.lists(st.sampled_from([0, 1, 300_000, 999_999, 1_000_000, 4_000_000]), max_size=40)


def served(lines: list[bytes], since: str) -> list[bytes]:
    """As the API does: from a whole second on."""
    start = datetime.fromisoformat(since) if since else START
    return [x for x in lines if datetime.fromisoformat(x.split(b" ")[0].decode()) >= start]


@settings(max_examples=150)
@given(steps, st.lists(st.integers(1, 10), min_size=1, max_size=30), st.booleans())
def test_lines_come_once_however_often_reading_breaks(
    pauses: list[int], pieces: list[int], alike: bool
) -> None:
    time, lines = START, []
    for number, pause in enumerate(pauses):
        time += timedelta(microseconds=pause)
        stamp = time.isoformat(timespec="microseconds").encode()
        lines.append(stamp + (b" same" if alike else b" %d" % number))
    if alike:
        # Lines of one time and one text cannot be told apart, but counted.
        lines = [*lines, *lines[-1:]]
    place, got, gaps = LogPosition(), 0, 0
    for piece in [*pieces, len(lines) + 1]:
        fresh = 0
        place.resume()
        for line in served(lines, place.since):
            entry = place.take(line)
            gaps += bool(entry and entry.gap)
            fresh += entry is not None
            if fresh == piece:
                break
        got += fresh
    assert got == len(lines)
    assert gaps == 0


def test_rotation_is_a_gap_where_the_last_line_is_gone() -> None:
    place = LogPosition()
    assert place.take(b"2026-01-31T12:00:00.5Z a") is not None
    place.resume()
    entry = place.take(b"2026-01-31T12:00:09.5Z z")
    assert entry is not None and entry.gap
    later = place.take(b"2026-01-31T12:00:09.6Z y")
    assert later is not None and not later.gap


def test_rotation_that_kept_the_last_line_is_no_gap() -> None:
    place = LogPosition()
    for text in (b"00.5Z a", b"00.6Z b"):
        place.take(b"2026-01-31T12:00:" + text)
    place.resume()
    assert place.take(b"2026-01-31T12:00:00.6Z b") is None
    entry = place.take(b"2026-01-31T12:00:00.7Z c")
    assert entry is not None and not entry.gap


def test_line_without_a_time_is_not_lost() -> None:
    entry = LogPosition().take(b"unable to retrieve container logs")
    assert entry is not None and entry.text == b"unable to retrieve container logs"


def test_a_log_that_is_cut_within_a_time_is_read_to_its_end() -> None:
    """As the API cuts it where it is limited by bytes."""
    whole = b"2026-01-31T12:00:00.123456789Z epoch 3/20"
    for length in range(1, len(whole)):
        place = LogPosition()
        place.take(b"2026-01-31T12:00:00.1Z epoch 2/20")
        entry = place.take(whole[:length])
        assert entry is not None and entry.time.tzinfo is not None
