"""Datasets and models of a TrainJob, fetched before its pods exist, which have no way outside.

`planned` says which fetches a job needs, into which folders of this machine; it starts nothing.
`fetch_all` runs them one after the other, as processes of the same program that a cluster's
initializers are. Credentials go by environment, never on a command line.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Final

import msgspec

from mpi_trainer.api.effective.combine import DATASET, MODEL, effective
from mpi_trainer.api.effective.overrides import STORAGE_URI
from mpi_trainer.api.kinds.pods import PodSpec
from mpi_trainer.diagnose.rank_lines import Line
from mpi_trainer.local.errors import CannotApply, LocalError
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.execute.supervisor_client import SupervisorClient
from mpi_trainer.local.jobs import trainjob
from mpi_trainer.local.pods import syscalls, volumes
from mpi_trainer.local.pods.environment import PodFacts, environment
from mpi_trainer.local.pods.pod import PodFile, PodMount

ROLES: Final = {DATASET: "dataset", MODEL: "model"}
_WORKSPACE: Final = "/workspace"
_MACHINE: Final = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "PYTHONPATH")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_LAST_LINES: Final = 20
_KILL_SECONDS: Final = 10


class Fetch(msgspec.Struct, frozen=True):
    """One initializer; `env` has credentials, and is never shown."""

    pod: str
    role: str
    env: Mapping[str, str]


def planned(settings: LocalSettings, claims: Mapping[str, str]) -> tuple[Fetch, ...]:
    """What is fetched first. Raises CannotApply for what has no meaning here."""
    if settings.train is None:
        return ()
    job, runtime = trainjob.values(settings.train)
    return tuple(
        _fetch(f"{job.name}-{one.name}-0-0", one.role, one.template.view.spec, settings, claims)
        for one in effective(job, runtime).jobs
        if one.role in ROLES
    )


def _fetch(
    pod: str, role: str, spec: PodSpec, settings: LocalSettings, claims: Mapping[str, str]
) -> Fetch:
    container = next((one for one in spec.containers if one.name == role), None)
    if container is None:
        raise CannotApply(
            f"{role}: its pod has no container {role}", "Name the container as the job is named."
        )
    if container.command or container.args not in ((), (ROLES[role],)):
        raise CannotApply(
            f"{role}: a command of its own is not run here, where images are not used",
            "Remove command and args, which leaves the image's own, and set storageUri.",
        )
    facts = PodFacts(name=pod, namespace="", address="127.0.0.1", node=pod)
    given = environment(container, (), facts, settings.materials)
    mounted = volumes.pod_volumes(spec, container, settings.materials, claims)
    given |= _secret_files(given.pop("CREDENTIALS_DIR", ""), mounted.files)
    mounts = mounted.mounts
    target = given.get("TARGET_DIR") or f"{_WORKSPACE}/{ROLES[role]}"
    folder = _here(target, mounts)
    if folder is None:
        raise CannotApply(
            f"{role}: {target} is in no volume that the nodes could see",
            "Mount a claim or a hostPath there, in the initializer and in the nodes.",
        )
    uri = given.get(STORAGE_URI, "")
    if uri.startswith("file:///"):
        inside = _here(uri.removeprefix("file://"), mounts)
        uri = uri if inside is None else f"file://{inside}"
    return Fetch(pod, ROLES[role], {**given, "TARGET_DIR": folder, STORAGE_URI: uri})


def _secret_files(folder: str, files: tuple[PodFile, ...]) -> dict[str, str]:
    """By name, what a mounted Secret has in that folder; this process sees no pod's files."""
    at = os.path.normpath(folder) if folder else ""
    return {
        PurePosixPath(file.path).name: file.content.decode(errors="replace").strip("\r\n")
        for file in files
        if at and str(PurePosixPath(file.path).parent) == at
    }


def _here(path: str, mounts: tuple[PodMount, ...]) -> str | None:
    """The path of this machine that a path of the pod stands for; None where it is in no volume."""
    wanted = PurePosixPath(os.path.normpath(path))
    for mount in sorted(mounts, key=lambda one: len(one.target), reverse=True):
        if wanted.is_relative_to(mount.target):
            if mount.source is None:
                return None
            return str(PurePosixPath(mount.source, wanted.relative_to(mount.target)))
    return None


def fetch_all(fetches: tuple[Fetch, ...], client: SupervisorClient) -> bool:
    """Whether everything is there; False where the job was stopped meanwhile. Raises LocalError."""
    return all(_run(one, client) for one in fetches)


def _run(fetch: Fetch, client: SupervisorClient) -> bool:
    machine = (*_MACHINE, *_PROXIES, *(name.lower() for name in _PROXIES))
    base = {name: os.environ[name] for name in machine if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "mpi_trainer.initializers", fetch.role],
        env={**fetch.env, **base, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=partial(_end_with, os.getpid()),
    )
    assert process.stdout is not None, "a pipe was asked for"
    output = process.stdout.fileno()
    os.set_blocking(output, False)
    lines, stopped = _Lines(fetch.pod, client), False
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(client.fileno(), selectors.EVENT_READ)
            ended = False
            while not ended:
                for key, _ in selector.select():
                    if key.fd == output:
                        data = os.read(output, 65536)
                        lines.feed(data)
                        ended = ended or not data
                    elif client.orders().stop:
                        stopped = True
                        process.send_signal(signal.SIGTERM)
                        selector.unregister(client.fileno())
        status = process.wait(_KILL_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        process.stdout.close()
    if stopped:
        return False
    if status:
        raise lines.error(fetch.role)
    return True


def _end_with(parent: int) -> None:
    """In the process that fetches: it would go on, and hold the folder, when nobody wants it."""
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class _Lines:
    """Of one process; they are the job's own, so that its log and its progress have them."""

    def __init__(self, pod: str, client: SupervisorClient) -> None:
        self._pod = pod
        self._client = client
        self._rest = b""
        self._last: list[str] = []

    def feed(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        if not data and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        texts = [line.decode(errors="replace") for line in whole]
        self._last = [*self._last, *texts][-_LAST_LINES:]
        self._client.report([Line(self._pod, "launcher", "stdout", None, one) for one in texts])

    def error(self, role: str) -> LocalError:
        """What the process said last."""
        said = next((t for t in reversed(self._last) if t.startswith("error: ")), "")
        hint = next((t for t in reversed(self._last) if t.startswith("hint: ")), "")
        problem = said.removeprefix("error: ") or f"{role}: the initializer was killed"
        return LocalError(problem, hint.removeprefix("hint: "))
