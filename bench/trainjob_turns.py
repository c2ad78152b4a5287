"""One TrainJob at a time, the contestants of `bench.trainjob` in turn, many times.

    python -m bench.trainjob_turns [--turns N] [--nodes N]

Method: as in `bench.trainjob`, but all contestants' processes are there from the beginning, and all
but the one whose turn it is are stopped. In every turn each has one job, in a new order, so that a
slow minute of the machine is everybody's. A ratio is the mean over the turns of what one took by
what another took in the same turn, with its standard error.

Of the Go trainer there is a process of either kind, see `bench.trainjob.called`: processes are
begun until there is one that writes JobSets first, and one that writes them last, as ours does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import cost
from bench.contestants import CLIENT
from bench.mpijob_report import commit, machine
from bench.scene import Scene, Size, connection
from bench.trainjob import (
    RUNTIMES,
    TRAINJOBS,
    WATCHED,
    WISHES,
    called,
    control_plane,
    play,
    running,
    runtime,
    train_job,
)
from tools.cluster import processes
from tools.cluster.errors import ClusterError
from tools.cluster.spec import Spec

RESULTS: Final = Path(__file__).parent / "results" / "trainjob_turns.json"
GO: Final = ("go-raised, JobSet first", "go-raised, JobSet last")
OURS: Final = ("ours", "ours-agent-off")
_TRIES: Final = 20
_SETTLED: Final = 0.6
"""seconds in which a process that was stopped takes in what it missed"""
_LONGEST: Final = 60.0

Times = dict[str, list[dict[str, float]]]
"""contestant -> for each turn, milestone -> seconds"""


async def contestants(spec: Spec, scene: Scene, stack: ExitStack) -> dict[str, int]:
    """The processes, all stopped: name -> pid."""
    pids: dict[str, int] = {}
    for number in range(_TRIES):
        with ExitStack() as trial:
            pid = trial.enter_context(running(spec, "go-raised", f"go-{number}"))
            warm = await play(spec, scene, "go-raised", pid, Size(1, 2))
            name = called("go-raised", warm)
            if name not in pids:
                pids[name] = pid
                stack.enter_context(trial.pop_all())
                stack.enter_context(_stopped(pid))
        if pids.keys() == set(GO):
            break
    else:
        raise ClusterError(f"{_TRIES} processes of the Go trainer were all of one kind")
    for who in OURS:
        pids[who] = pid = stack.enter_context(running(spec, who))
        await play(spec, scene, who, pid, Size(1, 2))
        stack.enter_context(_stopped(pid))
    return {name: pids[name] for name in (*GO, *OURS)}


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """It may be let go on inside, and goes on at the end, so that it can be told to end."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def turn(scene: Scene, who: str, pid: int, name: str, nodes: int) -> dict[str, float]:
    """One job of one contestant, from the post until its pods are there."""
    os.kill(pid, signal.SIGCONT)
    await asyncio.sleep(_SETTLED)
    scene.forget()
    job = train_job(name, nodes, WISHES.get(who, {}))
    begun = time.monotonic()
    await scene.post(TRAINJOBS, [job])
    await scene.until(lambda: len(scene.times("pod")) >= nodes - 1, _LONGEST)
    reached = {state: scene.times(state)[-1] - begun for state in ("JobSet", "pod")}
    await scene.clear(TRAINJOBS)
    os.kill(pid, signal.SIGSTOP)
    return reached


async def perform(spec: Spec, options: argparse.Namespace) -> Times:
    """All turns."""
    async with connection(spec, CLIENT) as session:
        scene = Scene(session, WATCHED)
        await scene.post(RUNTIMES, [runtime()])
        for pid in (os.getpid(), *processes.recorded(spec.state).values()):
            cost.prefer(pid)
        with scene.watching(), ExitStack() as stack:
            pids = await contestants(spec, scene, stack)
            times: Times = {who: [] for who in pids}
            for number in range(options.turns):
                for who in random.sample(list(pids), len(pids)):
                    name = f"t{number}-{list(pids).index(who)}"
                    times[who].append(await turn(scene, who, pids[who], name, options.nodes))
                print(f"turn {number + 1} of {options.turns}", file=sys.stderr)
    return times


def report(times: Times, nodes: int, load: float, target: Path) -> None:
    """Print the table and write the file."""
    print("| contestant | milestone | n | median s |", end="")
    print("".join(f" by {other} |" for other in GO))
    print("|---" * (4 + len(GO)) + "|")
    for who, turns in times.items():
        for state in turns[0]:
            middle = statistics.median(one[state] for one in turns)
            ratios = " | ".join(_ratio(times, who, other, state) for other in GO)
            print(f"| {who} | {state} | {len(turns)} | {middle:.4f} | {ratios} |")
    document = {"commit": commit(), "machine": machine(load), "nodes": nodes, "turns": times}
    target.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")


def _ratio(times: Times, who: str, other: str, state: str) -> str:
    pairs = zip(times[who], times[other], strict=True)
    ratios = [one[state] / another[state] for one, another in pairs]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    return f"{statistics.mean(ratios):.2f} ± {error:.2f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--turns", type=int, default=30)
    options.add_argument("--nodes", type=int, default=8)
    options.add_argument("--out", type=Path, default=RESULTS)
    given = options.parse_args()
    if given.turns < 2:
        options.error("--turns: a standard error takes two turns or more")
    load = os.getloadavg()[0]
    with control_plane() as spec:
        times = asyncio.run(perform(spec, given))
    report(times, given.nodes, load, given.out)


if __name__ == "__main__":
    main()
