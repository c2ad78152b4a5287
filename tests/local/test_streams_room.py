"""A slow reader costs no line where the scratch of a pod is small (L-1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from mpi_trainer.layout.agent import scripts

# As prterun does, it goes on where a write fails.
FLOOD = """
import os, time
for _ in range(400):
    try:
        os.write(1, b"x" * 100_000)
    except OSError:
        pass
    time.sleep(0.005)
"""
INSIDE = """
mount -t tmpfs -o size=16m tmpfs "$1" && mkdir "$1/launch" || exit
export MPI_TRAINER_SCRATCH="$1" MPI_TRAINER_STREAMS=x
printf '%s' "$2" >"$1/streams"
/bin/sh "$1/streams" run "$3" -c "$4" | { sleep 4; wc -c; }
"""


def test_slow_reader_of_a_pod_with_little_room_loses_nothing(tmp_path: Path) -> None:
    """A file that was full before it was too large lost whatever came then."""
    given = (str(tmp_path), scripts.text("streams"), sys.executable, FLOOD)
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", INSIDE, "sh", *given],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == [str(400 * 100_000)], done.stderr
