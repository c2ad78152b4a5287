"""docs/requirements.md has every requirement, and says whether CI shows it, a hand, or nobody."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/requirements.md").read_text()
NUMBERED = {"API": 6, "AC": 20, "CTL": 15, "OBS": 5, "MIG": 4, "RT": 2, "OPS": 1, "DOC": 1}
"""how many there are of each kind, counted from 1"""
CRITERIA = (1, 4, 6, 7, 9, 10, 11, 12)
"""success criteria that are ours to show"""
IDS = [
    *(f"{kind}-{number + 1}" for kind, most in NUMBERED.items() for number in range(most)),
    *(f"SC-{number:03}" for number in CRITERIA),
]
WHERE = ("rules", "local", "API", "nodes", "by browser", "by hand", "not shown")
IN_CI = ("tests/unit", "tests/golden", "tests/sim", "tests/local", "tests/api", "tests/e2e",
         "dashboard/browser")  # fmt: skip
BY_HAND = ("tests/api/full", "tests/e2e/full", "tests/faults", "tests/fuzz")
NAMED = re.compile(r"`((?:tests|dashboard/browser|bench)/[\w/.-]+)(?:::(\w+))?`")


class Row:
    def __init__(self, line: str) -> None:
        ids, self.what, self.where, tests = (
            cell.strip() for cell in line.strip("| ").split(" | ", 3)
        )
        self.ids = re.findall(r"\b[A-Z]+-\d+\b", ids)
        self.tests = [path for path, _ in NAMED.findall(tests)]

    @property
    def in_ci(self) -> bool:
        return any(by_ci(path) for path in self.tests)


def by_ci(path: str) -> bool:
    return path.startswith(IN_CI) and not path.startswith(BY_HAND) and not marked_full(path)


def marked_full(path: str) -> bool:
    """Whether all of a file's tests are left out of CI."""
    file = ROOT / path
    return file.is_file() and "pytestmark = [pytest.mark.full" in file.read_text()


ROWS = [Row(line) for line in TEXT.splitlines() if re.match(r"\| [A-Z]+-\d", line)]


def test_every_requirement_has_a_row_and_every_row_a_requirement() -> None:
    named = {one for row in ROWS for one in row.ids}
    assert [one for one in IDS if one not in named] == []
    assert named <= {*IDS}
    assert len(IDS) == 62


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what[:50])
def test_a_row_says_where_and_names_tests_that_exist(row: Row) -> None:
    assert any(word in row.where for word in WHERE), row.where
    assert row.tests or "not shown" in row.where
    for path in row.tests:
        assert next(ROOT.glob(f"{path}*"), None) is not None, path


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.what[:50])
def test_what_ci_does_not_run_is_said_to_be_by_hand(row: Row) -> None:
    """So that nobody takes a row for more than what lands is held to."""
    if not row.in_ci:
        assert "by hand" in row.where or "not shown" in row.where, row.tests
    if "not shown" in row.where:
        assert row.tests == [] or "by hand" in row.where


def test_what_runs_by_hand_is_told_apart() -> None:
    assert by_ci("tests/unit/docs")
    assert not by_ci("tests/faults/table.py")
    assert not by_ci("tests/api/full/test_odh_install.py")
