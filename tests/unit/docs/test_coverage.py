"""Floors of coverage: what is below its floor, or has none, is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools import coverage

SOURCE = Path(__file__).parents[3] / "src/mpi_trainer"


def report(lines: int, of: int, branches: int = 0, among: int = 0) -> dict[str, Any]:
    numbers = {
        "covered_lines": lines,
        "num_statements": of,
        "covered_branches": branches,
        "num_branches": among,
    }
    return {"summary": numbers}


def test_the_share_of_a_package_is_that_of_all_its_lines_and_branches() -> None:
    files = {
        "src/mpi_trainer/api/names.py": report(9, 10, 1, 2),
        "src/mpi_trainer/api/kinds/pods.py": report(5, 8),
        "src/mpi_trainer/kube/client.py": report(0, 4),
        "src/mpi_trainer/__init__.py": report(0, 1),
        "src/openshift_ai_sdk/__init__.py": report(0, 1),
    }
    assert coverage.reached(files) == {"api": 75.0, "kube": 0.0}


def test_packages_below_their_floor_missing_or_new_are_named() -> None:
    assert coverage.complaints({"api": 98.5}, {"api": 98}) == []
    assert coverage.complaints({"api": 97.9}, {"api": 98}) == [
        "api: 97.9 % is below its floor of 98 %"
    ]
    assert coverage.complaints({}, {"api": 98}) == ["api: no test reached it"]
    assert coverage.complaints({"api": 99.0, "new": 99.0}, {"api": 98}) == [
        "new: give it a floor in tools/coverage.py"
    ]


def test_every_package_has_a_floor_of_at_least_80_percent() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(coverage.FLOORS) == packages
    assert min(coverage.FLOORS.values()) >= 80
