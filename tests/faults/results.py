"""What a run of the faults found, kept in bench/results, and the page that is written from it.

python -m tests.faults.results      writes docs/faults.md anew
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.faults.judgement import assert_told
from tests.faults.scene import Outcome
from tests.faults.table import FAULTS, MPIS, Fault
from tests.faults.verdict import Verdict

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

What happens when something breaks, by running it: every fault below is injected into a real job of
three workers on one machine (own network, processes and files each; real sshd, real mpirun), always
on worker 1. A cell holds the seconds from the fault to the end of the job and the reason that the
job gives; the run checks the rank and the host that come with it too. Bounds: {running:.0f} s,
and {starting:.0f} s where the job never got as far as running. "ends well" marks a fault that this
MPI copes with by itself; **wrong** a cell whose reason, rank or host is not the truth, or that came
too late; `-` what does not apply or was not measured.

Written by `python -m tests.faults.results` from `bench/results/faults.json`; `make faults` measures
anew. Commit {commit}, {machine}.
"""


def keep(fault: Fault, mpi: str, outcome: Outcome, found: Verdict) -> None:
    """Adds a result, or replaces the one that was there."""
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        data: dict[str, Any] = json.loads(text) if text else {"faults": {}}
        data["commit"] = _commit()
        data["machine"] = f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"
        data["faults"].setdefault(fault.name, {})[mpi] = {
            "seconds": round(outcome.seconds, 1),
            "hung": outcome.hung,
            "state": found.state,
            "reason": found.reason,
            "rank": found.rank,
            "host": found.host,
            "right": right(fault, mpi, outcome),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
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
    from tests.faults.table import RUNNING_SECONDS, STARTING_SECONDS

    lines = [
        HEAD.format(
            running=RUNNING_SECONDS,
            starting=STARTING_SECONDS,
            commit=data["commit"],
            machine=data["machine"],
        ),
        f"| fault | {' | '.join(TITLES[m] for m in MPIS)} |",
        f"|---|{'---|' * len(MPIS)}",
    ]
    for fault in FAULTS:
        found = data["faults"].get(fault.name, {})
        cells = [_cell(found.get(mpi)) for mpi in MPIS]
        lines.append(f"| `{fault.name}` | {' | '.join(cells)} |")
    lines += ["", "What each fault does:", ""]
    lines += [f"- `{fault.name}`: {fault.what}" for fault in FAULTS]
    return "\n".join(lines) + "\n"


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "-"
    if result["hung"]:
        return f"**hung** (>{result['seconds']:.0f} s)"
    reason = "ends well" if result["state"] == "Succeeded" else result["reason"]
    wrong = "" if result["right"] else ", **wrong**"
    return f"{result['seconds']:.1f} s, {reason}{wrong}"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(KEPT.read_text())))
