"""What the product costs on one machine, as ratios measured side by side in one run.

    python -m bench.local [--rounds N]

Method: every round takes one sample of each thing, in turn, so that all of them meet the same
noise; the ratio is that of the medians.

The no-op is `sleep 0.1`: with `true`, which ends before its daemons have reported it, Open MPI's
own mpirun was seen to wait for ever.

- `bare mpirun`: `mpirun -n 4 sleep 0.1` in a launcher pod beside four worker pods that are already
  up, with nothing of ours in its way: no agent, no shim, no rank wrapper, no marks.
- `mpirun in a job`: the same in the same pods as a job runs it, with all of that (`bench.mpirun`).
- `odh run`: `odh run -q -w 4 -- sleep 0.1` as a user types it: Python, keys, namespaces, sshd,
  mpirun, and everything down again.
- `odh --help` and `odh mpijob list` (of no jobs, and of a thousand ended ones) against
  `python -c pass`, by the same interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.mpirun import mpirun
from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.local.jobs.jobdir import JobDir, JobState
from mpi_trainer.sdk.job.new import NewJob

ODH = str(Path(sys.executable).with_name("odh"))
WORKERS = 4
NO_OP = ("sleep", "0.1")
RESULTS = Path(__file__).parent / "results" / "local.json"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as full:
        _thousand_jobs(Path(full))
        commands: dict[str, Callable[[], float]] = {
            "python -c pass": lambda: _timed([sys.executable, "-c", "pass"]),
            "odh --help": lambda: _timed([ODH, "--help"]),
            "odh mpijob list": lambda: _timed([ODH, "mpijob", "list"], XDG_STATE_HOME=empty),
            "odh mpijob list of 1000": lambda: _timed([ODH, "mpijob", "list"], XDG_STATE_HOME=full),
            "odh mpijob get": lambda: _timed(
                [ODH, "mpijob", "get", "job-500"], XDG_STATE_HOME=full
            ),
        }
        for name, build in (("openmpi", "openmpi"), ("mpich", "mpich")):
            commands[f"bare mpirun ({name})"] = _mpirun(build, ours=False)
            commands[f"mpirun in a job ({name})"] = _mpirun(build, ours=True)
            commands[f"odh run ({name})"] = _whole(build)
        for round_ in range(rounds + 1):
            for name, sample in commands.items():
                seconds = sample()
                if round_:  # the first round warms caches up and does not count
                    samples.setdefault(name, []).append(seconds)
            print(f"round {round_} of {rounds}", file=sys.stderr)
    _report(samples)


def _whole(build: str) -> Callable[[], float]:
    command = [ODH, "run", "-q", "--mpi", build, "-w", str(WORKERS), "--", *NO_OP]
    return lambda: _timed(command)


def _mpirun(build: str, *, ours: bool) -> Callable[[], float]:
    return lambda: mpirun(build, WORKERS, NO_OP, agent=ours).seconds


def _timed(command: list[str], **env: str) -> float:
    started = time.perf_counter()
    # Users have compiled modules; a machine that forbids to write them would be measured instead.
    caller = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**caller, **env},
        cwd="/",
    )
    return time.perf_counter() - started


def _thousand_jobs(state_home: Path) -> None:
    """A thousand ended jobs, as the store leaves them."""
    now = datetime.now(UTC)
    job = NewJob("job", ("true",)).mpijob()
    done = conditions.Condition(
        type=conditions.SUCCEEDED, status=conditions.TRUE, reason="MPIJobSucceeded"
    )
    status = MPIJobStatus(conditions=(done,), start_time=now, completion_time=now)
    for number in range(1000):
        name = f"job-{number}"
        folder = JobDir(state_home / "mpi-trainer/jobs/default" / name)
        folder.path.mkdir(parents=True)
        meta = msgspec.structs.replace(job.metadata, name=name, creation_timestamp=now)
        folder.write_job(msgspec.structs.replace(job, metadata=meta))
        folder.write_state(JobState(now, 2, 1, "OpenMPI", status))


def _report(samples: dict[str, list[float]]) -> None:
    middle = {name: statistics.median(values) for name, values in samples.items()}
    pairs = [(name, "python -c pass") for name in middle if name.startswith(("odh --", "odh mpij"))]
    for build in ("openmpi", "mpich"):
        pairs.append((f"mpirun in a job ({build})", f"bare mpirun ({build})"))
        pairs.append((f"odh run ({build})", f"bare mpirun ({build})"))
    ratios = {f"{a} / {b}": round(middle[a] / middle[b], 2) for a, b in pairs}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    load = os.getloadavg()[0]
    result = {
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, load {load:.1f}",
        "rounds": len(next(iter(samples.values()))),
        "median_seconds": {name: round(value, 4) for name, value in middle.items()},
        "ratios": ratios,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
