"""`odh must-gather`: what a report of a fault needs, in one file, without secrets."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from mpi_trainer import __version__
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_TRAINJOB
from mpi_trainer.cli.context import cluster_config
from mpi_trainer.cli.output import terminal
from mpi_trainer.cli.verbs import doctor_cluster
from mpi_trainer.cli.verbs.mpijob import options
from mpi_trainer.kube import requests
from mpi_trainer.kube.config import Config
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.oneshot import OneShot
from mpi_trainer.kube.requests import LogOptions
from mpi_trainer.kube.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    MPIJOBS,
    PODS,
    RESOURCE_QUOTAS,
    TRAINJOBS,
    Resource,
)
from mpi_trainer.local.errors import LocalError
from mpi_trainer.sdk.redacted_facts import LARGEST, log_file, object_file, redacted_text

HOME: Final = "mpi-trainer"
MOST_BYTES: Final = 32 << 20
"""of all files before they are packed"""
MOST_OBJECTS: Final = 200
MOST_PODS: Final = 20
MOST_LINES: Final = 5000
_SECONDS: Final = 120.0
_HOOKS: Final = tuple(
    Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
_OF_JOBS: Final = {"pods": LABEL_JOB, "trainjob-pods": LABEL_TRAINJOB}
"""by which label the pods of either kind are found, by the name of the file"""
_MOST_PAGES: Final = 50
"""of a namespace's events, among which are those of a job"""


@click.command("must-gather")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@options.namespace
@click.option("--system-namespace", default=HOME, show_default=True, help="Where we run.")
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.  [default: must-gather-TIME.tar.gz here]",
)
def command(
    *, jobs: tuple[str, ...], namespace: str, system_namespace: str, to: Path | None
) -> None:
    """Collect what a report of a fault needs into one file: versions, what `odh doctor` says, our
    own pods with events and logs, and of each JOB that is named the same.

    With your own rights; what you may not read is said in notes.txt. Values of variables, Secrets
    and ConfigMaps are not in it, and what looks like a secret is cut out of logs. Read it before
    you send it all the same.
    """
    now = datetime.now(UTC)
    target = to or Path(f"must-gather-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    if target.exists():
        raise _taken(target)
    config = msgspec.structs.replace(cluster_config(), namespace=namespace)
    gathered = Gathered(now)
    with OneShot(config) as server:
        for name, content in _files(server, config, system_namespace, jobs, gathered):
            if not gathered.add(name, content):
                break
    try:
        with target.open("xb") as file:
            file.write(gathered.packed())
    except FileExistsError as error:
        raise _taken(target) from error
    click.echo(str(target))
    terminal.say(f"{len(gathered.names)} files; read them before you send them")


def _taken(target: Path) -> LocalError:
    return LocalError(f"{target} is there already", "Choose another file with --to.")


class Gathered:
    """Files for the archive, as many as there is room and time for."""

    def __init__(self, now: datetime) -> None:
        self.notes: list[str] = []
        self.names: list[str] = []
        self._now = now
        self._room = MOST_BYTES
        self._deadline = time.monotonic() + _SECONDS
        self._packed = io.BytesIO()
        self._archive = tarfile.TarFile.gzopen("", "w", self._packed)

    def add(self, name: str, content: bytes) -> bool:
        """Whether there may be more."""
        if len(content) > self._room or time.monotonic() > self._deadline:
            self.notes.append(f"{name} and what follows is left out: no room or no time is left")
            return False
        self._write(name, content)
        self._room -= len(content)
        return True

    def packed(self) -> bytes:
        self._write("notes.txt", "".join(f"{note}\n" for note in self.notes).encode())
        self._archive.close()
        return self._packed.getvalue()

    def _write(self, name: str, content: bytes) -> None:
        info = tarfile.TarInfo(f"must-gather/{name}")
        info.size, info.mode, info.mtime = len(content), 0o600, int(self._now.timestamp())
        self._archive.addfile(info, io.BytesIO(content))
        self.names.append(name)


def _files(
    server: OneShot, config: Config, home: str, jobs: Sequence[str], gathered: Gathered
) -> Iterator[tuple[str, bytes]]:
    yield "version.txt", f"odh {__version__}\ncollected {datetime.now(UTC).isoformat()}\n".encode()
    checks = [msgspec.to_builtins(check) for check in doctor_cluster.examine(config)]
    yield "doctor.yaml", object_file(checks)
    where: list[tuple[str, Resource, str, str]] = [
        ("system/deployments", DEPLOYMENTS, home, ""),
        ("system/pods", PODS, home, ""),
        ("system/leases", LEASES, home, ""),
        ("system/events", EVENTS, home, ""),
        *((f"system/{kind.plural}", kind, "", "") for kind in _HOOKS),
        ("system/runtimes", CLUSTER_TRAINING_RUNTIMES, "", ""),
        ("namespace/quotas", RESOURCE_QUOTAS, config.namespace, ""),
    ]
    for job in jobs:
        where += [
            (f"jobs/{job}/{name}", PODS, config.namespace, f"{label}={job}")
            for name, label in _OF_JOBS.items()
        ]
    for name, resource, namespace, labels in where:
        items = _items(server, resource, namespace, labels, gathered)
        if items is None:
            continue
        yield f"{name}.yaml", object_file(items)
        if resource is PODS:
            for pod in items[:MOST_PODS]:
                yield from _logs(server, name.rpartition("/")[0], pod, gathered)
    for job in jobs:
        yield from _job(server, config.namespace, job, gathered)


def _items(
    server: OneShot, resource: Resource, namespace: str, labels: str, gathered: Gathered
) -> list[dict[str, Any]] | None:
    asked = requests.list_page(resource, namespace, labels=labels, limit=MOST_OBJECTS)
    try:
        found = server.call(asked)
    except KubeError as error:
        gathered.notes.append(f"{resource.plural} of {namespace or 'the cluster'}: {_line(error)}")
        return None
    if found.get("metadata", {}).get("continue"):
        where = namespace or "the cluster"
        gathered.notes.append(f"{resource.plural} of {where}: only the first {MOST_OBJECTS}")
    items: list[dict[str, Any]] = found["items"]
    return items


def _logs(
    server: OneShot, folder: str, pod: dict[str, Any], gathered: Gathered
) -> Iterator[tuple[str, bytes]]:
    metadata = pod["metadata"]
    spec, status = pod["spec"], pod.get("status", {})
    states = (status.get(key) or () for key in ("initContainerStatuses", "containerStatuses"))
    statuses = {one["name"]: one for one in chain.from_iterable(states)}
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        name = container["name"]
        restarted = statuses.get(name, {}).get("restartCount", 0) > 0
        for previous in (False, True) if restarted else (False,):
            options_ = LogOptions(
                name, previous=previous, timestamps=True, tail=MOST_LINES, limit_bytes=LARGEST
            )
            asked = requests.logs(metadata["namespace"], metadata["name"], options_)
            file = f"{metadata['name']}-{name}{'-previous' if previous else ''}.log"
            try:
                yield f"{folder}/logs/{file}", log_file(server.fetch(asked))
            except KubeError as error:
                gathered.notes.append(f"log {file}: {_line(error)}")


def _job(
    server: OneShot, namespace: str, job: str, gathered: Gathered
) -> Iterator[tuple[str, bytes]]:
    """Of whichever kind has one of this name."""
    for resource in (MPIJOBS, TRAINJOBS):
        try:
            found = server.call(requests.get(resource, namespace, job))
        except (KubeError, ValueError) as error:
            gathered.notes.append(f"{resource.kind} {job}: {_line(error)}")
            continue
        yield f"jobs/{job}/{resource.kind.lower()}.yaml", object_file(found)
    try:
        events = list(islice(_events(server, namespace, job), MOST_OBJECTS))
    except KubeError as error:
        gathered.notes.append(f"events of {namespace}: {_line(error)}")
        return
    yield f"jobs/{job}/events.yaml", object_file(events)


def _events(server: OneShot, namespace: str, job: str) -> Iterator[dict[str, Any]]:
    """Of the job and of what is named after it: an API server cannot select those."""
    further = ""
    for _page in range(_MOST_PAGES):
        found = server.call(requests.list_page(EVENTS, namespace, continue_=further))
        yield from (one for one in found["items"] if f"{_about(one)}-".startswith(f"{job}-"))
        further = found.get("metadata", {}).get("continue") or ""
        if not further:
            return


def _about(event: dict[str, Any]) -> str:
    return str(event.get("involvedObject", {}).get("name", ""))


def _line(error: Exception) -> str:
    return redacted_text(" ".join(str(error).split()))[:500]
