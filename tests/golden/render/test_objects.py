"""Every job in `*/in.yaml` becomes the objects in `objects.yaml` beside it (README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.layout.mpijob import layout
from tests.golden.render.objects import CASES, projection, read

by_case = pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)


@by_case
def test_objects_are_those_that_were_read_and_found_right(case: Path) -> None:
    """CTL-1, CTL-7, CTL-8, CTL-10, CTL-14."""
    assert projection(case) == (case / "objects.yaml").read_text()


@by_case
def test_case_says_what_it_shows(case: Path) -> None:
    comment = [line for line in (case / "in.yaml").read_text().splitlines() if line[:1] == "#"]
    assert "Shows:" in " ".join(comment)


def test_every_implementation_has_a_case() -> None:
    shown = {layout(*read(case)).implementation for case in CASES}
    assert shown == {impl.name for impl in REGISTRY}
