"""What short commands cost: `odh --help`, `list`, `get` and `create`, here and on a cluster.

    python -m bench.cli [--before SOURCES] [--rounds N] [--cluster NAME]

Method: an API server without nodes, and job directories without processes. Every round takes one
sample of each command in turn, with `--before` of both sources one right after the other, so that
all meet the same noise. The median of the clock depends on what else the machine does; the CPU
seconds of the command's own process are what an idle machine would take, and must be under
`LIMIT_MS`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench.interfaces import NAMESPACE, ODH, ROOT, Sample, prepared, server, timed
from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.local.jobs.jobdir import JobDir, JobState

RESULTS = ROOT / "bench/results/cli.json"
LIMIT_MS = 250
JOBS = 100
WORDS = ("train", "--image", "x:1", "--command", "python train.py")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", type=Path, help="The src folder of another checkout.")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--cluster", default="bench-cli")
    given = options.parse_args()
    sources = {"after": ROOT / "src"}
    if given.before:
        sources = {"before": given.before.resolve(), **sources}
    load_before = os.getloadavg()[0]
    with server(given.cluster) as spec, tempfile.TemporaryDirectory() as folder:
        there = prepared(spec, Path(folder), JOBS)
        here = {**there, "MPI_TRAINER_BACKEND": "local", "XDG_STATE_HOME": folder}
        stored(Path(folder) / "mpi-trainer/jobs/default", JOBS)
        samples = taken(commands(f"{folder}/job.yaml", here, there), sources, given.rounds)
    report(samples, given.rounds, load_before)


def stored(folder: Path, count: int) -> None:
    """Directories of jobs that have ended."""
    for number in range(count):
        job = JobDir(folder / f"job-{number:04}")
        job.path.mkdir(parents=True)
        ended = Condition(type="Succeeded", status="True", reason="Done", message="It is done.")
        now = datetime.now(UTC)
        status = MPIJobStatus(conditions=(ended,), start_time=now, completion_time=now)
        job.write_state(JobState(created=now, workers=2, slots=1, implementation="OpenMPI",
                              status=status))  # fmt: skip


def commands(
    file: str, here: dict[str, str], there: dict[str, str]
) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Name → words and environment."""
    both = {
        "list": ("mpijob", "list"),
        "list -o json": ("mpijob", "list", "-o", "json"),
        "create --dry-run": ("mpijob", "create", *WORDS, "--dry-run"),
        "create --dry-run -f": ("mpijob", "create", "-f", file, "--dry-run"),
    }
    cluster = {
        "get": ("mpijob", "get", "job-0000"),
        "get -o yaml": ("mpijob", "get", "job-0000", "-o", "yaml"),
        "create -f": ("mpijob", "create", "-f", file),
        "validate --server": ("validate", "--server", "-n", NAMESPACE, "-f", file),
    }
    return {
        "--help": (("--help",), here),
        "mpijob --help": (("mpijob", "--help"), here),
        **{f"{name}, here": (words, here) for name, words in both.items()},
        **{f"{name}, on a cluster": (words, there) for name, words in (both | cluster).items()},
    }


def taken(
    todo: dict[str, tuple[tuple[str, ...], dict[str, str]]], sources: dict[str, Path], rounds: int
) -> dict[str, dict[str, list[Sample]]]:
    samples: dict[str, dict[str, list[Sample]]] = {
        name: {which: [] for which in sources} for name in todo
    }
    for number in range(rounds + 1):
        for name, (words, env) in todo.items():
            for which, source in sources.items():
                sample = timed([ODH, *words], {**env, "PYTHONPATH": str(source)})
                if number:  # the first round warms caches up and does not count
                    samples[name][which].append(sample)
        print(f"round {number} of {rounds}", file=sys.stderr)
    return samples


def report(samples: dict[str, dict[str, list[Sample]]], rounds: int, load_before: float) -> None:
    rows = {
        name: {which: _figures(found) for which, found in both.items()}
        for name, both in samples.items()
    }
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    python = sys.version.split()[0]
    result = {
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, Python {python}, load {load_before:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after",
        "rounds": rounds,
        "commands": rows,
        "above_the_limit": [
            name for name, row in rows.items() if row["after"]["cpu_best_ms"] > LIMIT_MS
        ],
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


def _figures(found: list[Sample]) -> dict[str, float]:
    walls, cpus = [wall for wall, _ in found], [cpu for _, cpu in found]
    return {
        "median_ms": round(statistics.median(walls) * 1000),
        "best_ms": round(min(walls) * 1000),
        "cpu_median_ms": round(statistics.median(cpus) * 1000),
        "cpu_best_ms": round(min(cpus) * 1000),
    }


if __name__ == "__main__":
    main()
