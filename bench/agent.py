"""What the agent costs: mpirun under it against bare mpirun, side by side in one run.

    python -m bench.agent [--rounds N] [--many WORKERS]

Method: every round takes one sample of each thing, in turn, so that all of them meet the same
noise; figures are those of the medians. The no-op is `sleep 0.1` (see `bench.local`).

- `start`: mpirun of a no-op on four workers.
- `start of many`: the same on 64 workers, one rank each.
- `allreduce`: 3,000 sums of 1 MiB over two workers with a rank each, one for each core of a small
  machine, six times a round since it is noisy; the seconds are those that rank 0 measures between
  the first and the last of them, so they show what the agent costs while ranks work.

`error` is the standard error of a ratio: the spread of both kinds of samples over the root of their
number. A ratio that differs from another by less says nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.mpirun import mpirun

RESULTS = Path(__file__).parent / "results" / "agent.json"
WORKERS = 4
BUSY = 2
ALLREDUCES = 6
NO_OP = ("sleep", "0.1")
BUILDS = ("openmpi", "mpich", "intel")
ALLREDUCE = """
import array, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
ours, total = (array.array("d", bytes(1 << 20)) for _ in range(2))
comm.Allreduce([ours, MPI.DOUBLE], [total, MPI.DOUBLE])
comm.Barrier()
started = time.perf_counter()
for _ in range(3000):
    comm.Allreduce([ours, MPI.DOUBLE], [total, MPI.DOUBLE])
if comm.rank == 0:
    print(f"took={time.perf_counter() - started:.6f}", flush=True)
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--many", type=int, default=64, help="0 leaves that part out")
    options.add_argument("--builds", default=",".join(BUILDS))
    given = options.parse_args()
    if given.rounds < 2:
        options.error("--rounds: at least 2, since one sample has no error to tell")
    samples: dict[str, dict[str, list[float]]] = {}
    for round_ in range(given.rounds + 1):
        for name, sample in _things(given.builds.split(","), given.many):
            for kind, agent in (("bare", False), ("agent", True)):
                seconds = sample(agent)
                if round_:  # the first round warms caches up and does not count
                    samples.setdefault(name, {}).setdefault(kind, []).append(seconds)
        print(f"round {round_} of {given.rounds}", file=sys.stderr)
    _report(samples)


def _things(builds: list[str], many: int) -> list[tuple[str, Callable[[bool], float]]]:
    things: list[tuple[str, Callable[[bool], float]]] = []
    for build in builds:
        things.append((f"start ({build})", _start(build, WORKERS)))
        things += [(f"allreduce ({build})", _allreduce(build))] * ALLREDUCES
        if many:
            things.append((f"start of {many} ({build})", _start(build, many)))
    return things


def _start(build: str, workers: int) -> Callable[[bool], float]:
    return lambda agent: mpirun(build, workers, NO_OP, agent=agent).seconds


def _allreduce(build: str) -> Callable[[bool], float]:
    command = (sys.executable, "-c", ALLREDUCE)

    def sample(agent: bool) -> float:
        told = re.search(r"took=([\d.]+)", mpirun(build, BUSY, command, agent=agent).output)
        assert told is not None
        return float(told[1])

    return sample


def _report(samples: dict[str, dict[str, list[float]]]) -> None:
    middle = {
        name: {kind: statistics.median(values) for kind, values in kinds.items()}
        for name, kinds in samples.items()
    }
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    result = {
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "samples": {name: len(kinds["bare"]) for name, kinds in samples.items()},
        "median_seconds": {
            name: {kind: round(value, 4) for kind, value in kinds.items()}
            for name, kinds in middle.items()
        },
        "added_seconds": {n: round(k["agent"] - k["bare"], 3) for n, k in middle.items()},
        "ratios": {n: round(k["agent"] / k["bare"], 3) for n, k in middle.items()},
        "error": {n: round(math.hypot(*map(_error, k.values())), 3) for n, k in samples.items()},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _error(values: list[float]) -> float:
    return statistics.stdev(values) / statistics.mean(values) / math.sqrt(len(values))


if __name__ == "__main__":
    main()
