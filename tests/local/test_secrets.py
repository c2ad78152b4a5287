"""No key and no secret value in any argument, log or file that others can read, while a job runs.

A job gets a secret by env from a Secret, in launcher and workers; its ranks prove that they have
it. Meanwhile every process of the machine and every file of the pods' own is looked at.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tests.faults.scene import JOB, WORKERS, Scene, manifest, state_folder
from tests.local.matrix import mpis
from tests.local.scenario import needs_root

pytestmark = needs_root
PODS = (f"{JOB}-launcher", *(f"{JOB}-worker-{i}" for i in range(WORKERS)))
# Where a pod's own files are; the rest of what it sees is the machine's.
OWN = ("run", "tmp", "dev/shm", "etc/mpi", "etc/mpi-agent", "root/.ssh")
BEGIN = b"-----BEGIN OPENSSH PRIVATE KEY-----"
HAS_IT = "import os, pathlib, time; assert len(os.environ['TOKEN']) == 40; "
# The ranks stay until they have been looked at, and a minute at most.
PROGRAM = HAS_IT + (
    "from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); "
    "pathlib.Path('/state/running').touch(); "
    "[time.sleep(0.05) for _ in range(1200) if not pathlib.Path('/state/seen').exists()]"
)


def job(state: Path, token: str) -> str:
    """A job file whose pods get `token` from a Secret."""
    made = manifest(["mpirun", "-n", str(WORKERS), "python", "-c", PROGRAM], state, {})
    source = {"secretKeyRef": {"name": "held", "key": "token"}}
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        container: dict[str, Any] = replica["template"]["spec"]["containers"][0]
        container["env"] = [{"name": "TOKEN", "valueFrom": source}]
    held = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "held"},
        "stringData": {"token": token},
    }
    path = state / "job.yaml"
    path.touch(0o600)
    path.write_text(yaml.safe_dump_all([made, held]))
    return str(path)


def files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Regular files below the pod's own folders."""
    for own in OWN:
        for folder, below, names in os.walk(root / own):
            below[:] = [name for name in below if not of_the_machine(Path(folder, name), root)]
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):
                    status = path.lstat()
                    if stat.S_ISREG(status.st_mode) and status.st_size < 1 << 20:
                        yield path, status


def of_the_machine(path: Path, root: Path) -> bool:
    """Whether it is the machine's own, seen in the pod under its own name, as the home is."""
    with suppress(OSError):
        return os.path.samestat(path.lstat(), Path("/", path.relative_to(root)).lstat())
    return False


def open_to_others(path: Path, root: Path) -> bool:
    """Whether another user in the pod could read it: the file's mode, and a way to it."""
    above = [p for p in path.parents if p.is_relative_to(root)]
    return bool(path.stat().st_mode & 0o004) and all(p.stat().st_mode & 0o001 for p in above)


def private_parts(root: Path) -> set[bytes]:
    """A line from the middle of every private key in the pod."""
    found = set()
    for path, _ in files(root):
        with suppress(OSError):
            content = path.read_bytes()
            if content.startswith(BEGIN):
                found.add(content.splitlines()[3])
    return found


def arguments() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes()


@mpis
def test_secrets_are_in_no_argument_no_log_and_no_file_that_others_can_read(mpi: str) -> None:
    """AC-19, SEC: seen from outside while the ranks run."""
    token = secrets.token_hex(20)
    with state_folder() as state:
        running = Scene(state, ["--mpi", mpi, "-f", job(state, token)])
        try:
            running.until_there("running")
            roots = {pod: Path("/proc", str(running.first(pod)), "root") for pod in PODS}
            keys = {part for root in roots.values() for part in private_parts(root)}
            assert keys, "the job's keys must be found, or nothing is shown"
            hidden = {token.encode(), *keys}
            told = [(pid, argv) for pid, argv in arguments() if any(h in argv for h in hidden)]
            assert not told
            shown = [
                path
                for root in roots.values()
                for path, _ in files(root)
                if open_to_others(path, root) and any(h in path.read_bytes() for h in hidden)
            ]
            assert not shown
            opening = private_parts(roots[f"{JOB}-launcher"])
            assert opening, "the launcher opens the workers"
            for pod in PODS[1:]:
                assert not opening & private_parts(roots[pod]), "a worker opens nothing"
            (state / "seen").touch()
            ended = running.end(60)
        finally:
            running.abandon()
        assert ended.ended["state"] == "Succeeded", ended.text
        log = ended.text.encode() + (state / "odh.out").read_bytes()
        assert not [h for h in hidden if h in log]
