"""The real `odh` in a folder and a job store of its own, with nothing left of it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.sdk.job.new import NewJob
from tests import forkserver

ODH = forkserver.INSTALLED
# Ranks that say how far they are. Words: how many epochs, seconds for each, the rank that fails;
# options are ignored.
TRAIN = """
import json, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
given = [word for word in sys.argv[1:] if not word.startswith("--")]
given += ["3", "0", "-1"][len(given) :]
epochs, pause, bad = int(given[0]), float(given[1]), int(given[2])
for epoch in range(1, epochs + 1):
    world.Barrier()
    if world.rank == 0:
        print(json.dumps({"epoch": epoch, "epochs": epochs, "loss": 1 / epoch}), flush=True)
    print("rank", world.rank, "epoch", epoch, flush=True)
    time.sleep(pause)
    if world.rank == bad:
        world.Abort(3)
"""


class Cli:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1"}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.started: list[subprocess.Popen[str]] = []
        (folder / "train.py").write_text(TRAIN)

    def __call__(
        self, *words: str, code: int = 0, program: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [program or forkserver.odh(), *words],
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
        process = subprocess.Popen(
            [forkserver.odh(), *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def create(
        self,
        name: str,
        *train: str,
        annotations: Mapping[str, str] | None = None,
        limits: Mapping[str, str] | None = None,
    ) -> None:
        """A job of two workers that trains: epochs, seconds for each, the rank that fails.

        It asks for next to nothing, so that the machine's queue lets others run beside it; `limits`
        are each worker's.
        """
        words = [*train, *("3", "0", "-1")[len(train) :]]
        new = NewJob(name, ("python", "train.py", *words), implementation="MPICH", backoff_limit=0)
        wire = to_wire(new.mpijob())
        wire["metadata"].setdefault("annotations", {}).update(annotations or {})
        for replica in wire["spec"]["mpiReplicaSpecs"].values():
            container = replica["template"]["spec"]["containers"][0]
            container["resources"] = {"requests": {"cpu": "50m", "memory": "10Mi"}}
            if limits:
                container["resources"]["limits"] = dict(limits)
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(wire))
        self("mpijob", "create", "-f", str(file))

    def state(self, name: str) -> str:
        found = self.json("mpijob", "list")["items"]
        return str(next((job["state"] for job in found if job["name"] == name), "gone"))


@contextmanager
def cli() -> Iterator[Cli]:
    """In a folder that a job shares with its pods; /tmp would be each pod's own."""
    with tempfile.TemporaryDirectory(prefix="odh-cli-", dir="/var/tmp") as scratch:
        (Path(scratch) / "work").mkdir()
        yield from _cleaned(Cli(Path(scratch) / "work"))


def _cleaned(odh: Cli) -> Iterator[Cli]:
    try:
        yield odh
    finally:
        for process in odh.started:
            if process.poll() is None:
                process.kill()
                process.communicate()
        namespaces = {job["namespace"] for job in odh.json("mpijob", "list", "-A")["items"]}
        for namespace in namespaces:
            odh("mpijob", "delete", "--all", "--yes", "-n", namespace)
