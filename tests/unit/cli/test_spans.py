"""Durations as they are written and read."""

from __future__ import annotations

import pytest

from mpi_trainer.cli.output import formatting
from mpi_trainer.cli.verbs.mpijob import options


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0.0),
        ("90", 90.0),
        ("1.5", 1.5),
        ("90s", 90.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("7d", 604800.0),
        ("250ms", 0.25),
        (" 5M ", 300.0),
        ("", None),
        ("-1", None),
        ("5 minutes", None),
        ("m", None),
        ("1h-2m", None),
        ("9" * 400, None),
    ],
)
def test_durations_are_read(text: str, wanted: float | None) -> None:
    assert options.seconds(text) == wanted


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        (-5, "0s"),
        (0.4, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (134, "2m14s"),
        (3600 * 3 + 300, "3h5m"),
        (86400 * 4 + 7200, "4d2h"),
    ],
)
def test_durations_are_written_in_two_units(span: float, wanted: str) -> None:
    assert formatting.duration(span) == wanted
