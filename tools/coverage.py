"""Checks how much of each package the tests reach.

    python -m tools.coverage            all packages, after `make test`
    python -m tools.coverage --pure     those that `make unit` alone must reach

Each suite leaves its data in FOLDER. Much of `odh`, the controller and the local backend runs only
in processes of its own, which `tests/measured.py` measures in some test files. The share is of
lines and branches together. A floor is what a package reached when it was last raised, rounded
down, and two less where processes are measured: one that is killed leaves no data. Raise it when
you have covered more, and do not lower it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from coverage import Coverage
from coverage.exceptions import NoDataError

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / ".coverage-data"
PACKAGE: Final = "mpi_trainer"

PURE: Final = {
    "api": 98,
    "check": 95,
    "decide": 98,
    "diagnose": 97,
    "layout": 96,
    "migrate": 96,
    "render": 94,
}
FLOORS: Final = PURE | {
    "cli": 85,
    "controller": 84,
    "initializers": 80,
    "kube": 89,
    "local": 85,
    "plan": 93,
    "runtime": 92,
    "sdk": 85,
    "server": 86,
    "webhook": 83,
}


def reached(files: Mapping[str, Any]) -> dict[str, float]:
    """The share of each package in percent, from the files of a JSON report."""
    covered: defaultdict[str, int] = defaultdict(int)
    whole: defaultdict[str, int] = defaultdict(int)
    for path, found in files.items():
        parts = Path(path).parts
        if PACKAGE not in parts[:-2]:
            continue  # modules of the package itself, and other packages
        name = parts[parts.index(PACKAGE) + 1]
        numbers = found["summary"]
        covered[name] += numbers["covered_lines"] + numbers.get("covered_branches", 0)
        whole[name] += numbers["num_statements"] + numbers.get("num_branches", 0)
    return {name: 100 * covered[name] / whole[name] for name in sorted(whole) if whole[name]}


def complaints(shares: Mapping[str, float], floors: Mapping[str, int]) -> list[str]:
    """What is wrong: packages below their floor, without one, or not seen at all."""
    low = [
        f"{name}: {shares[name]:.1f} % is below its floor of {floor} %"
        for name, floor in floors.items()
        if name in shares and shares[name] < floor
    ]
    missing = [f"{name}: no test reached it" for name in floors if name not in shares]
    new = [f"{name}: give it a floor in tools/coverage.py" for name in shares.keys() - FLOORS]
    return [*low, *missing, *sorted(new)]


def measured(folder: Path, suite: str = "*") -> dict[str, Any]:
    """The JSON report over a suite's data or all of the folder, which is kept as it is."""
    with tempfile.TemporaryDirectory() as scratch:
        copies = [shutil.copy(path, scratch) for path in folder.glob(suite)]
        report = Path(scratch) / "report.json"
        one = Coverage(str(Path(scratch) / "all"), config_file=str(ROOT / "pyproject.toml"))
        one.combine(copies, strict=True)
        one.json_report(outfile=str(report))
        found: dict[str, Any] = json.loads(report.read_text())["files"]
        return found


def main(words: Iterable[str]) -> int:
    floors, suite = (PURE, "unit") if "--pure" in words else (FLOORS, "*")
    try:
        shares = reached(measured(FOLDER, suite))
    except NoDataError:
        print(f"error: no data in {FOLDER.name}\n\nhint: run `make test`, which measures it")
        return 1
    for name in floors:
        print(f"{name:12}{shares.get(name, 0):6.1f} %   floor {floors[name]} %")
    wrong = complaints(shares, floors)
    if wrong:
        print("error: " + "\n       ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
