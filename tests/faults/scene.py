"""A real job of three workers with one slot each, to be hurt while it runs.

`/state` in every pod is a folder of the test's own: programs lie there, and files in it tell how
far the job has come. Guarantee: a scene ends within the time that it is given, whatever the job
does; one that has to be killed says so. Nothing of it is left on the machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mpi_trainer.api.kinds.annotations import bound
from tests.local.odh import MARK, ODH, Census, assert_nothing_left, processes, until

JOB = "train"
WORKERS = 3
VICTIM = f"{JOB}-worker-1"
LAUNCHER = f"{JOB}-launcher"
START_SECONDS = 60.0


class Outcome(msgspec.Struct, frozen=True):
    """How a job ended. `hung` where it had to be killed; `ended` is what `odh -o json` printed."""

    seconds: float
    code: int
    ended: dict[str, Any]
    text: str
    hung: bool = False


class Process(msgspec.Struct, frozen=True):
    """A process of a pod, as the machine sees it; `inner` is its number in the pod."""

    pid: int
    inner: int
    name: str
    command: str


class Scene:
    """A job that runs."""

    def __init__(self, state: Path, words: list[str]) -> None:
        self.state = state
        self._mark = uuid.uuid4().hex
        self._before = Census.take(self._mark)
        self._out = (state / "odh.out").open("w+b")
        self._err = (state / "odh.err").open("w+b")
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [str(ODH), "run", "-e", f"{MARK}={self._mark}", "-o", "json", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            env={**os.environ, MARK: self._mark},
        )

    def until_there(self, name: str) -> None:
        """Until the job has made that file, or has ended, or START_SECONDS are over."""
        until(
            f"{name} is there ({self._text(self._err)[-2000:]})",
            lambda: (self.state / name).exists() or self._process.poll() is not None,
            START_SECONDS,
        )

    def restart_clock(self) -> None:
        self._started = time.monotonic()

    def processes(self, host: str) -> list[Process]:
        """All processes of the pod with that host name."""
        return [p for pid in processes(self._mark) for p in _process(pid, host)]

    def first(self, host: str) -> int:
        """The machine's number of the pod's first process."""
        return next(p.pid for p in self.processes(host) if p.inner == 1)

    def inside(self, host: str, namespace: str, *command: str, text: str = "") -> None:
        """Runs a command in one namespace (`net`, `mount`) of a pod."""
        subprocess.run(
            ["nsenter", f"--target={self.first(host)}", f"--{namespace}", "--", *command],
            input=text,
            text=True,
            check=True,
            timeout=20,
        )

    def end(self, seconds: float) -> Outcome:
        """How the job ended; killed when it has not after so many seconds."""
        hung = False
        left = self._started + seconds - time.monotonic()
        try:
            self._process.wait(timeout=max(left, 0.0))
        except subprocess.TimeoutExpired:
            hung = True
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        took = time.monotonic() - self._started
        outcome = Outcome(
            took, self._process.returncode, self._report(), self._text(self._err), hung
        )
        assert_nothing_left(self._mark, self._before)
        return outcome

    def abandon(self) -> None:
        """For a test that failed on the way."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._out.close()
        self._err.close()

    def _report(self) -> dict[str, Any]:
        with suppress(ValueError):
            found: dict[str, Any] = json.loads(self._text(self._out))
            return found
        return {}

    @staticmethod
    def _text(file: Any) -> str:
        return Path(file.name).read_text(errors="replace")


def _process(pid: int, host: str) -> Iterator[Process]:
    folder = Path("/proc", str(pid))
    with suppress(OSError):  # it has just ended
        if (folder / "root/etc/hostname").read_text().strip() == host:
            status = (folder / "status").read_text()
            inner = re.search(r"NSpid:.*\b(\d+)$", status, re.MULTILINE)
            yield Process(
                pid,
                int(inner[1]) if inner else 0,
                (folder / "comm").read_text().strip(),
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"),
            )


@contextmanager
def scene(
    mpi: str,
    command: list[str],
    state: Path,
    limits: Mapping[str, str] | None = None,
    bounds: Mapping[str, int] | None = None,
    policy: Mapping[str, Any] | None = None,
) -> Iterator[Scene]:
    """A job with that launcher command; `state` holds what it needs to find. `bounds` are seconds
    that the job sets in place of the agent's own, `policy` is of its runPolicy. `limits` are
    each worker's: ranks that wait for others take all CPU that they get."""
    path = state / "job.yaml"
    made = manifest(command, state, limits or {})
    made["spec"]["runPolicy"] |= policy or {}
    made["metadata"]["annotations"] = {
        bound(name): str(seconds) for name, seconds in (bounds or {}).items()
    }
    path.write_text(yaml.safe_dump(made))
    running = Scene(state, ["--mpi", mpi, "-f", str(path)])
    try:
        yield running
    finally:
        running.abandon()


@contextmanager
def state_folder() -> Iterator[Path]:
    """Below /var/tmp: pods have a /tmp of their own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="faults-") as folder:
        yield Path(folder)


def manifest(command: list[str], state: Path, limits: Mapping[str, str]) -> dict[str, Any]:
    def template(**container: Any) -> dict[str, Any]:
        mpi = {"name": "mpi", "image": "local", **container}
        mpi["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
        volume = {"name": "state", "hostPath": {"path": str(state)}}
        return {"spec": {"containers": [mpi], "volumes": [volume]}}

    given = {"resources": {"limits": dict(limits)}} if limits else {}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": JOB},
        "spec": {
            "runPolicy": {"backoffLimit": 0},
            "mpiReplicaSpecs": {
                "Launcher": {"template": template(command=command)},
                "Worker": {"replicas": WORKERS, "template": template(**given)},
            },
        },
    }
