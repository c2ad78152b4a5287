"""What a terminal shows, from what was written to it."""

from __future__ import annotations

import pytest

from tools.picture.screen import PLAIN, Row, Span, Style, rows, styled


def texts(found: tuple[Row, ...]) -> list[str]:
    return ["".join(span.text for span in row) for row in found]


def test_colours_split_a_row_into_spans_that_know_their_column() -> None:
    assert rows("\x1b[36m[0]\x1b[0m epoch 1\r\n") == (
        (Span(0, "[0]", Style(colour=6)), Span(3, " epoch 1", PLAIN)),
    )


def test_equal_neighbours_are_one_span() -> None:
    assert rows("\x1b[32mgo\x1b[32mod\x1b[0m") == ((Span(0, "good", Style(colour=2)),),)


def test_blank_rows_are_kept_between_and_cut_at_the_end() -> None:
    assert texts(rows("a\r\n\r\nb\r\n\r\n  \r\n")) == ["a", "", "b"]


def test_progress_that_is_overwritten_is_not_seen() -> None:
    assert texts(rows("installing … 9 s\r\x1b[Kdone\r\n")) == ["done"]
    assert texts(rows("abcdef\rxy")) == ["xycdef"]
    assert texts(rows("abcdef\x1b[2K\rx")) == ["x"]


def test_tab_and_backspace_move_the_column() -> None:
    assert texts(rows("a\tb")) == ["a       b"]
    assert texts(rows("ab\b\bc")) == ["cb"]


def test_other_sequences_leave_no_trace() -> None:
    assert texts(rows("\x1b[?25l\x1b]0;title\x07\x1b(B\x1b=x\x1b[2J\x07y")) == ["xy"]


@pytest.mark.parametrize(
    ("numbers", "want"),
    [
        ("", PLAIN),
        ("1;31", Style(colour=1, bold=True)),
        ("2", Style(faint=True)),
        ("95", Style(colour=13)),
        ("31;39", PLAIN),
        ("1;2;22", PLAIN),
        ("38;5;31;32", Style(colour=2)),
        ("38;2;31;32;33;34", Style(colour=4)),
        ("4", PLAIN),
    ],
)
def test_style_after_a_sequence(numbers: str, want: Style) -> None:
    assert styled(PLAIN, numbers) == want
