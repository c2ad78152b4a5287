"""Runs a job's Layout in containers of chosen images and users, as a cluster would.

No kubelet is here, but the same words are obeyed: files and keys where the layout puts them, with
the owner and modes of mounted volumes; `prepare` first, then overlays, then the command, all as the
image's user. So it shows what a pod on a cluster meets, on one machine and within seconds.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.model import Layout, PodLayout
from mpi_trainer.layout.mpi import implementation
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.local.execute.key_pairs import KeyPairProcess
from mpi_trainer.local.mpi.distributions import Distribution
from mpi_trainer.local.pods import rootfs
from mpi_trainer.local.pods.pod import PodFile, PodMount, PodPlan, RunningPod
from mpi_trainer.local.pods.sandbox import Sandbox
from mpi_trainer.runtime.key_pairs import KeyPair
from tests.local.scenario import in_sandbox

PROGRAM = Path(__file__).with_name("kubelet.py")
MPI, APP = "/opt/mpi", "/opt/app"
KUBELET, SPEC = "/run/kubelet/main.py", "/run/kubelet/spec.json"
Pairs = tuple[tuple[str, str], ...]


class Image(msgspec.Struct, frozen=True):
    """A tree of files and the user that a container of it runs as.

    `tree` is a folder of the machine or empty; `binds` show more of the machine's files. `files`
    are the image's own, `own` the folders of its user; `over` what a container runtime puts over
    the image, read-only.
    """

    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    tree: str = "/"
    binds: Pairs = ()
    links: Pairs = ()
    files: tuple[tuple[str, str, int], ...] = ()
    own: tuple[str, ...] = ()
    over: Pairs = ()
    env: Pairs = ()
    cwd: str = "/"
    read_only: bool = False
    privileged: bool = False
    worker_port: int = 2222


class Ran(msgspec.Struct, frozen=True):
    """What became of a job. `words` are the launcher's termination message."""

    code: int | None
    output: str
    errors: str
    words: str
    workers: str


def ran(job: MPIJob, image: Image, mpi: Distribution, app: Path, seconds: float = 150.0) -> Ran:
    """The job's end, run in containers of that image, with `app` at /opt/app."""
    answer: Ran = in_sandbox(0, lambda box: _run(box, job, image, (mpi, app), seconds))
    return answer


def _run(
    box: Sandbox, job: MPIJob, image: Image, brought: tuple[Distribution, Path], seconds: float
) -> Ran:
    made = layout(mpijob_with_defaults(job))
    pods = _Pods(box, made, image, *brought)
    workers = box.start(tuple(pods.plan(w) for w in made.workers))
    deadline = time.monotonic() + seconds
    heard = [""] * len(workers)
    for index, _ in enumerate(workers, 1):
        while not _answers(box.address(index), image.worker_port):
            _hear(workers, heard)
            if time.monotonic() > deadline or any(_readable(w.pidfd) for w in workers):
                _hear(workers, heard)
                return Ran(None, "", "a worker has no sshd", "", "\n".join(heard))
            time.sleep(0.02)
    (launcher,) = box.start((pods.plan(made.launcher),))
    words = ["", ""]
    while True:
        over = time.monotonic() > deadline
        ended = _readable(launcher.pidfd)
        _hear(workers, heard)
        for place, descriptor in enumerate((launcher.stdout, launcher.stderr)):
            words[place] += _read(descriptor)
        if ended or over:
            break
        time.sleep(0.02)
    code = launcher.wait().code if ended else None
    last = Path(launcher.share, "last-words")
    told = last.read_text(errors="replace") if last.exists() else ""
    return Ran(code, words[0], words[1], told, "\n".join(heard))


class _Pods:
    def __init__(
        self, box: Sandbox, made: Layout, image: Image, mpi: Distribution, app: Path
    ) -> None:
        self._box, self._made, self._image, self._mpi, self._app = box, made, image, mpi, app
        own, host = KeyPairProcess(2).pairs()
        self._keys: Mapping[str, str] = _parts(own, host)

    def plan(self, pod: PodLayout) -> PodPlan:
        index = self._made.pods.index(pod)
        spec = json.dumps(self._spec(pod)).encode()
        return PodPlan(
            name=pod.name,
            hostname=pod.hostname,
            address=self._box.address(index),
            # Not the environment's own, which may lie in a folder that pods have for themselves.
            argv=(str(Path(sys.executable).resolve()), KUBELET, SPEC),
            env=(("PATH", os.environ["PATH"]),),
            cwd="/",
            files=(PodFile(SPEC, 0o600, spec), PodFile(KUBELET, 0o600, PROGRAM.read_bytes())),
            mounts=(PodMount(str(self._mpi.prefix), MPI), PodMount(str(self._app), APP)),
        )

    def _spec(self, pod: PodLayout) -> dict[str, Any]:
        image = self._image
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"{self._box.address(i)} {_address(self._made, p)} {p.name}\n"
            for i, p in enumerate(self._made.pods)
        )
        files = [(f.path, f.text, f.mode) for f in pod.files]
        keys = [(k.path, self._keys[k.part], k.mode or 0o644) for k in pod.keys]
        return {
            **{name: getattr(image, name) for name in ("uid", "gid", "groups", "tree", "links")},
            **{name: getattr(image, name) for name in ("own", "over", "cwd", "privileged")},
            "binds": [*image.binds, (MPI, MPI), (APP, APP)],
            "files": [*image.files, ("/etc/hosts", hosts, 0o644), *files, *keys],
            "scratch": pod.scratch,
            "prepare": pod.prepare,
            "overlays": [(o.source, o.target) for o in pod.overlays],
            "readOnly": image.read_only,
            "command": pod.command,
            "env": self._env(pod),
            "termination": f"{rootfs.SHARE}/last-words",
        }

    def _env(self, pod: PodLayout) -> dict[str, str]:
        shared = implementation(self._made.implementation).shared_machine_env("eth0")
        container = pod.template.view.spec.containers[0]
        return {
            "PATH": f"{MPI}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_LIBRARY_PATH": f"{MPI}/lib",
            "HOME": "/" if self._image.uid else "/root",
            "HOSTNAME": pod.hostname,
            **{name: value.format(MPI) for name, value in self._mpi.settings},
            **dict(shared),
            **dict(self._image.env),
            **{e.name: e.value or "" for e in container.env},
            **dict(pod.env),
        }


def _parts(own: KeyPair, host: KeyPair) -> dict[str, str]:
    return {
        "private": own.private.decode(),
        "public": f"{own.public}\n",
        "host-private": host.private.decode(),
        "host-public": f"{host.public}\n",
    }


def _address(made: Layout, pod: PodLayout) -> str:
    return f"{pod.hostname}.{pod.subdomain}.{made.namespace}.svc"


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1.0) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _hear(workers: tuple[RunningPod, ...], heard: list[str]) -> None:
    for place, worker in enumerate(workers):
        heard[place] += _read(worker.stdout) + _read(worker.stderr)


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, 1 << 20).decode(errors="replace")
    except BlockingIOError:
        return ""


def _readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def applets() -> tuple[str, ...]:
    done = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split())
