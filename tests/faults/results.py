"""What a run of the faults found, kept in bench/results, and the page that is written from it.

python -m tests.faults.results      writes docs/faults.md anew
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.judgement import assert_told, first_finding
from tests.faults.program_table import PROGRAM_FAULTS
from tests.faults.scene import Outcome
from tests.faults.table import FAULTS, MPIS, RUNNING_SECONDS, STARTING_SECONDS, Fault
from tests.faults.verdict import verdict

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "bench/results/faults.json"
PAGE = ROOT / "docs/faults.md"
TITLES = {
    "openmpi": "Open MPI 5.0.11",
    "openmpi4": "4.1.8",
    "openmpi4-debian": "4.1.4 Debian",
    "mpich": "MPICH 5.0.2",
    "mpich4-debian": "4.0.2 Debian",
    "intel": "Intel 2021.18",
}
HEAD = """# Faults

What happens when something breaks, by running it. Each run checks what the job says of it: the
reason, the cause that `odh explain` gives (one of [these](troubleshooting.md)), the rank, the host,
and that there is a remedy. **wrong** marks what is not the truth or came too late, `-` what does
not apply or was not measured.

Written by `python -m tests.faults.results` from `bench/results/faults.json`; `make faults` measures
the first two tables anew, `pytest tests/e2e/full/test_explained.py` the third.

## In MPI, its daemons and the network

Every fault is injected into a real job of three workers on one machine (own network, processes and
files each; real sshd, real mpirun), always on worker 1. A cell holds the seconds from the fault to
the end of the job, the reason that the job gives, and the cause that is found where it says more.
Bounds: {running:.0f} s, and {starting:.0f} s where the job never got as far as running. "ends well"
marks a fault that this MPI copes with by itself. {measured}
"""
PROGRAMS = """
## In the program, its files and its data

In such jobs too, each fault on one MPI. Seconds are from the fault to the end of the job, or from
the start of the job where no rank got as far as the fault. Most programs run under
`python -m mpi4py`; where they do not, the other ranks wait until the agent ends the job. {measured}

| fault | what | MPI | told after | cause | where |
|---|---|---|---|---|---|"""
CLUSTER = """
## On real nodes

Jobs of two workers on a Kubernetes of three nodes, with the controller of this tree; all of them
run side by side on one machine of two cores, so seconds are of a busy cluster. They count from the
fault, or from the creation of the job where that is the fault, to the condition that tells it.
{measured}

| fault | what | told after | cause | where |
|---|---|---|---|---|"""


def keep(table: str, fault: Fault, mpi: str, outcome: Outcome) -> None:
    """Adds a result, or replaces the one that was there."""
    found, first = verdict(outcome.ended), first_finding(outcome)
    keep_entry(
        table,
        fault.name,
        mpi,
        {
            "seconds": round(outcome.seconds, 1),
            "hung": outcome.hung,
            "state": found.state,
            "reason": found.reason,
            "rank": found.rank,
            "host": found.host,
            "cause": first["cause"],
            "ranks": first["ranks"],
            "hosts": first["hosts"],
            "right": right(fault, mpi, outcome),
        },
    )


def keep_entry(table: str, name: str, column: str, entry: dict[str, Any]) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        data: dict[str, Any] = json.loads(text) if text else {}
        linux = f"Linux {platform.release().split('-')[0]}"
        machine = f"{os.cpu_count()} cores, {linux}, load {os.getloadavg()[0]:.0f}"
        data.setdefault("measured", {})[table] = {"commit": _commit(), "machine": machine}
        entry["at"] = datetime.now(UTC).isoformat(timespec="seconds")
        data.setdefault(table, {}).setdefault(name, {})[column] = entry
        file.truncate(0)
        file.write(json.dumps(data, indent=1) + "\n")


def right(fault: Fault, mpi: str, outcome: Outcome) -> bool:
    """Whether the run would pass its test."""
    try:
        assert_told(fault, mpi, outcome, fault.seconds)
    except AssertionError:
        return False
    return True


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def page(data: dict[str, Any]) -> str:
    head = HEAD.format(
        running=RUNNING_SECONDS, starting=STARTING_SECONDS, measured=_measured(data, "faults")
    )
    lines = [head, *_matrix(data.get("faults", {}))]
    lines += [PROGRAMS.format(measured=_measured(data, "programs"))]
    lines += _programs(data.get("programs", {}))
    lines += [CLUSTER.format(measured=_measured(data, "cluster"))]
    lines += _cluster(data.get("cluster", {}))
    return "\n".join(lines) + "\n"


def _measured(data: dict[str, Any], table: str) -> str:
    when = data.get("measured", {}).get(table)
    return f"Commit {when['commit']}, {when['machine']}." if when else "Not measured yet."


def _matrix(found: dict[str, Any]) -> Iterator[str]:
    yield f"| fault | {' | '.join(TITLES[m] for m in MPIS)} |"
    yield f"|---|{'---|' * len(MPIS)}"
    for fault in FAULTS:
        cells = [_cell(found.get(fault.name, {}).get(mpi)) for mpi in MPIS]
        yield f"| `{fault.name}` | {' | '.join(cells)} |"
    unmeasured = {"cause": ""}
    old = [
        mpi
        for mpi in MPIS
        if any("cause" not in cells.get(mpi, unmeasured) for cells in found.values())
    ]
    if old:
        names = ", ".join(f"`{mpi}`" for mpi in old)
        yield f"\nSome cells were measured before findings were checked: {names}."
    yield from ("", "What each fault does:", "")
    yield from (f"- `{fault.name}`: {fault.what}" for fault in FAULTS)


def _programs(found: dict[str, Any]) -> Iterator[str]:
    for fault in PROGRAM_FAULTS:
        for mpi, result in found.get(fault.name, {}).items():
            title = (
                TITLES[mpi] if mpi in ("openmpi", "mpich", "intel") else f"Open MPI {TITLES[mpi]}"
            )
            yield f"| `{fault.name}` | {fault.what} | {title} | {_explained(result)} |"


def _cluster(found: dict[str, Any]) -> Iterator[str]:
    for name, columns in sorted(found.items()):
        for result in columns.values():
            yield f"| `{name}` | {result['what']} | {_explained(result)} |"


def _explained(result: dict[str, Any]) -> str:
    ranks = ", ".join(str(rank) for rank in result["ranks"][:2])
    where = " on ".join(filter(None, (f"rank {ranks}" if ranks else "", *result["hosts"][:1])))
    wrong = "" if result["right"] else ", **wrong**"
    return f"{result['seconds']:.1f} s | {result['cause']}{wrong} | {where or '-'}"


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "-"
    if result["hung"]:
        return f"**hung** (>{result['seconds']:.0f} s)"
    reason = "ends well" if result["state"] == "Succeeded" else result["reason"]
    cause = result.get("cause", "")
    more = f": {cause}" if cause and cause != reason else ""
    wrong = "" if result["right"] else ", **wrong**"
    return f"{result['seconds']:.1f} s, {reason}{more}{wrong}"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(KEPT.read_text())))
