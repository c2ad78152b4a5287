"""What `odh explain` takes for a long log: python -m bench.explain [MEGABYTES]

Method: the directory of a job on this machine that failed, with as much log as asked for (100 MB of
text: a training's lines of some 300 characters, a traceback of rank 3 in the middle and one at the
end) and nothing found when it ended, so that all of it is read. Measured from outside: seconds, CPU
seconds and the most memory of the command. Beside it the reader alone, on the same lines.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.diagnose.cause import concluded
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.local.execute.settings import current_settings
from mpi_trainer.local.jobs.jobdir import JobDir, JobState
from mpi_trainer.local.jobs.logfile import LogEntry, LogWriter
from mpi_trainer.sdk.job.new import NewJob

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench/results/explain.json"
ODH = Path(sys.executable).with_name("odh")
NAME = "long"
RANKS = 4
PIECE = 500
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 88, in step',
    "    loss = model(batch)",
    "ValueError: operands could not be broadcast together with shapes (32,128) (31,128)",
)


def lines(size: int) -> Iterator[tuple[int, str]]:
    """Ranks in turn and what they print, of so many bytes together."""
    written = number = 0
    while written < size:
        metrics = " ".join(f"head_{i}={(number * 7 + i) % 997 / 1000:.4f}" for i in range(20))
        text = f"epoch {number // 10_000} step {number} loss {1 / (number + 1):.6f} {metrics}"
        written += len(text) + 1
        yield number % RANKS, text
        number += 1
        if abs(written - size // 2) < len(text):
            yield from ((3, word) for word in TRACEBACK)
    yield from ((3, word) for word in TRACEBACK)


def stored(folder: Path, size: int) -> int:
    """Makes the job's directory; how many lines its log has."""
    folder.mkdir(parents=True)
    job = JobDir(folder)
    made = NewJob(NAME, ("python", "train.py")).mpijob()
    message = f"Launcher {NAME}-launcher failed with exit code 1."
    failed = Condition(type="Failed", status="True", reason="LauncherPodFailed", message=message)
    now = datetime.now(UTC)
    status = MPIJobStatus(conditions=(failed,), start_time=now, completion_time=now)
    job.write_job(made)
    job.write_settings(current_settings({}))
    job.write_state(
        JobState(created=now, workers=2, slots=2, implementation="OpenMPI", status=status)
    )
    writer, pending = LogWriter(folder), []
    for number, (rank, text) in enumerate(lines(size)):
        pod = f"{NAME}-launcher"
        pending.append(LogEntry(number, now.timestamp(), 1, pod, "stdout", rank, text))
        if len(pending) == PIECE:
            writer.add(pending)
            pending = []
    writer.add(pending)
    writer.close()
    assert not writer.missing.dropped, "the log has no room for that much"
    return writer.number


def explained(env: dict[str, str]) -> dict[str, object]:
    began = time.perf_counter()
    done = subprocess.run(
        [ODH, "mpijob", "explain", NAME, "-o", "json"], env=env, check=True, capture_output=True
    )
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = json.loads(done.stdout)["findings"][0]
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mib": round(used.ru_maxrss / 1024),
        "cause": first["cause"],
        "ranks": first["ranks"],
    }


def read(size: int) -> dict[str, object]:
    reader, began = LogReader(), time.process_time()
    for rank, text in lines(size):
        reader.read_line(text, rank)
    made = time.process_time() - began
    began = time.process_time()
    for _ in lines(size):
        pass
    spent = made - (time.process_time() - began)
    found = concluded(reader, Facts(exit_code=1))
    return {"cpu_seconds": round(spent, 1), "cause": found[0].cause}


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        count = stored(Path(folder, "mpi-trainer/jobs/default", NAME), megabytes * 1_000_000)
        env = {**os.environ, "XDG_STATE_HOME": folder, "MPI_TRAINER_BACKEND": "local"}
        result = {
            "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, "
            f"load {os.getloadavg()[0]:.1f}",
            "megabytes": megabytes,
            "lines": count,
            "explain": explained(env),
            "reader_alone": read(megabytes * 1_000_000),
        }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
