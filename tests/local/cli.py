"""The real `odh` in a folder and a job store of its own, with nothing left of it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ODH = Path(sys.executable).with_name("odh")
# Ranks that say how far they are. Words: how many epochs, seconds for each, the rank that fails.
TRAIN = """
import json, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
epochs, pause, bad = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
for epoch in range(1, epochs + 1):
    world.Barrier()
    if world.rank == 0:
        print(json.dumps({"epoch": epoch, "epochs": epochs, "loss": 1 / epoch}), flush=True)
    print("rank", world.rank, "epoch", epoch, flush=True)
    time.sleep(pause)
    if world.rank == bad:
        sys.exit(3)
"""


class Cli:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1"}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.env["PYTHONPYCACHEPREFIX"] = str(folder.parent / "pycache")
        (folder / "train.py").write_text(TRAIN)

    def __call__(
        self, *words: str, code: int = 0, program: str = "odh"
    ) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [ODH.with_name(program), *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == code, (words, ended.returncode, ended.stdout, ended.stderr)
        return ended

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json").stdout)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [ODH, *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def create(self, name: str, *train: str, more: tuple[str, ...] = ()) -> None:
        """A job of two workers that trains: epochs, seconds for each, the rank that fails."""
        words = [*train, *("3", "0", "-1")[len(train) :]]
        self(
            *("mpijob", "create", name, "-w", "2", "--mpi", "mpich", "--retries", "0", *more),
            *("--", "python", "train.py", *words),
        )

    def state(self, name: str) -> str:
        found = self.json("mpijob", "list")["items"]
        return str(next((job["state"] for job in found if job["name"] == name), "gone"))


@contextmanager
def cli(folder: Path) -> Iterator[Cli]:
    folder.mkdir(parents=True, exist_ok=True)
    odh = Cli(folder)
    try:
        yield odh
    finally:
        namespaces = {job["namespace"] for job in odh.json("mpijob", "list", "-A")["items"]}
        for namespace in namespaces:
            odh("mpijob", "delete", "--all", "-n", namespace)
