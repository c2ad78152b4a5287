"""Every job in `*/in.yaml` has the layout in the `layout.yaml` beside it. See README.md."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.layout.mpijob import layout
from tests.golden.projection import CASES, projection, read

by_case = pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)


@by_case
def test_layout_is_the_one_that_was_read_and_found_right(case: Path) -> None:
    """CTL-1."""
    assert projection(case) == (case / "layout.yaml").read_text()


@by_case
def test_templates_arrive_as_they_were_written(case: Path) -> None:
    """CTL-10."""
    replicas = yaml.safe_load((case / "in.yaml").read_text())["spec"]["mpiReplicaSpecs"]
    made = layout(*read(case))
    assert made.launcher.template.content == replicas["Launcher"]["template"]
    assert all(pod.template.content == replicas["Worker"]["template"] for pod in made.workers)


@by_case
def test_case_says_what_it_shows(case: Path) -> None:
    comment = [line for line in (case / "in.yaml").read_text().splitlines() if line[:1] == "#"]
    assert "Shows:" in " ".join(comment)


def test_every_implementation_has_a_case() -> None:
    shown = {layout(*read(case)).implementation for case in CASES}
    assert shown == {impl.name for impl in REGISTRY}
