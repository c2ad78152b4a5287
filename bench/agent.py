"""What the agent costs: mpirun under it against bare mpirun, side by side in one run.

    python -m bench.agent [--rounds N] [--many WORKERS]

Method: every round takes a pair of each thing, bare and under the agent, so that all of them meet
the same noise; which of the two goes first changes from pair to pair. The no-op is `sleep 0.1` (see
`bench.local`).

- `start`: mpirun of a no-op on four workers.
- `start of many`: the same on 64 workers, one rank each.
- `allreduce`: 3,000 sums of 1 MiB over two workers with a rank each, one for each core of a small
  machine, six times a round since it is noisy; the seconds are those that rank 0 measures between
  the first and the last of them, so they show what the agent costs while ranks work. `all` has the
  pairs of every MPI.
- `kept from a core`: in those same seconds, the time for which a rank could have run but another
  process had its core, as the kernel counted it, of both ranks together, in per cent of the
  seconds. Each rank waits for the other, so what the agent adds here is what it takes from the run,
  or more. It hardly varies where the seconds do: a cache or a neighbour changes those.

`ratio` is the mean of the pairs' ratios and `error` its standard error: a ratio that differs from
another by less says nothing.
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

import msgspec

from bench.mpirun import mpirun

RESULTS = Path(__file__).parent / "results" / "agent.json"
WORKERS = 4
BUSY = 2
ALLREDUCES = 6
NO_OP = ("sleep", "0.1")
BUILDS = ("openmpi", "mpich", "intel")
ALLREDUCE = """
import array, glob, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
def kept():
    threads = [open(path).read() for path in glob.glob("/proc/self/task/*/schedstat")]
    return sum(int(told.split()[1]) for told in threads) / 1e9
ours, total = (array.array("d", bytes(1 << 20)) for _ in range(2))
comm.Allreduce([ours, MPI.DOUBLE], [total, MPI.DOUBLE])
comm.Barrier()
before, started = kept(), time.perf_counter()
for _ in range(3000):
    comm.Allreduce([ours, MPI.DOUBLE], [total, MPI.DOUBLE])
took = time.perf_counter() - started
waited = comm.reduce(kept() - before)
if comm.rank == 0:
    print(f"took={took:.6f} kept={waited:.6f}", flush=True)
"""


class Sample(msgspec.Struct, frozen=True):
    """`kept`: seconds that ranks wanted a core and had none."""

    seconds: float
    kept: float | None = None


class Pair(msgspec.Struct, frozen=True):
    bare: Sample
    agent: Sample


Taken = Callable[[bool], Sample]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--many", type=int, default=64, help="0 leaves that part out")
    options.add_argument("--builds", default=",".join(BUILDS))
    given = options.parse_args()
    if given.rounds < 2:
        options.error("--rounds: at least 2, since one sample has no error to tell")
    things = _things(given.builds.split(","), given.many)
    for taken in dict(things).values():  # warms caches up and does not count
        _pair(taken, agent_first=False)
    pairs: dict[str, list[Pair]] = {}
    for round_ in range(given.rounds):
        for place, (name, taken) in enumerate(things):
            pair = _pair(taken, agent_first=bool((round_ + place) % 2))
            pairs.setdefault(name, []).append(pair)
        print(f"round {round_ + 1} of {given.rounds}", file=sys.stderr)
    _report(pairs)


def _pair(taken: Taken, *, agent_first: bool) -> Pair:
    if agent_first:
        agent = taken(True)
        return Pair(taken(False), agent)
    return Pair(taken(False), taken(True))


def _things(builds: list[str], many: int) -> list[tuple[str, Taken]]:
    things: list[tuple[str, Taken]] = []
    for build in builds:
        things.append((f"start ({build})", _start(build, WORKERS)))
        things += [(f"allreduce ({build})", _allreduce(build))] * ALLREDUCES
        if many:
            things.append((f"start of {many} ({build})", _start(build, many)))
    return things


def _start(build: str, workers: int) -> Taken:
    return lambda agent: Sample(mpirun(build, workers, NO_OP, agent=agent).seconds)


def _allreduce(build: str) -> Taken:
    command = (sys.executable, "-c", ALLREDUCE)

    def taken(agent: bool) -> Sample:
        told = mpirun(build, BUSY, command, agent=agent).output
        found = re.search(r"took=([\d.]+) kept=([\d.]+)", told)
        assert found is not None, told
        return Sample(float(found[1]), float(found[2]))

    return taken


def _report(pairs: dict[str, list[Pair]]) -> None:
    busy = {name: each for name, each in pairs.items() if name.startswith("allreduce")}
    everything = {**pairs, "allreduce (all)": [pair for each in busy.values() for pair in each]}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    result = {
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "things": {name: _figures(each) for name, each in everything.items()},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _figures(pairs: list[Pair]) -> dict[str, float]:
    bare, agent = [pair.bare for pair in pairs], [pair.agent for pair in pairs]
    middle = [statistics.median(s.seconds for s in kind) for kind in (bare, agent)]
    ratios = [pair.agent.seconds / pair.bare.seconds for pair in pairs]
    figures = {
        "pairs": len(pairs),
        "bare median s": round(middle[0], 3),
        "agent median s": round(middle[1], 3),
        "added s": round(middle[1] - middle[0], 3),
        "ratio": round(statistics.mean(ratios), 3),
        "error": round(statistics.stdev(ratios) / math.sqrt(len(ratios)), 3),
    }
    if bare[0].kept is None:
        return figures
    without, with_ = (_kept(kind) for kind in (bare, agent))
    return figures | {
        "kept from a core, bare %": round(without, 2),
        "kept from a core, agent %": round(with_, 2),
        "kept from a core, added %": round(with_ - without, 2),
    }


def _kept(samples: list[Sample]) -> float:
    return 100 * statistics.mean((s.kept or 0.0) / s.seconds for s in samples)


if __name__ == "__main__":
    main()
