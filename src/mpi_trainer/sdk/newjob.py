"""An MPIJob from a few words: what `odh run`, the SDK and the dashboard build. Pure.

The result is an ordinary manifest with everything spelled out, so that what runs can be seen,
saved and submitted anywhere (CTL-15).
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import PurePosixPath
from typing import Any

import msgspec

from mpi_trainer.api.defaults import OPEN_MPI
from mpi_trainer.api.meta import ObjectMeta
from mpi_trainer.api.mpijob import (
    LAUNCHER,
    WORKER,
    MPIJob,
    MPIJobSpec,
    ReplicaSpec,
    RunPolicy,
)
from mpi_trainer.api.pods import PodTemplate
from mpi_trainer.layout.launch import LAUNCHERS, SHELLS, mpi_command

LONGEST_NAME = 40
_SCRIPTS = frozenset({".py", ".sh"})
_STARTERS = frozenset({"env", "exec", "nice", "nohup", "time", "timeout"}) | LAUNCHERS | SHELLS
_PYTHON = re.compile(r"python[0-9.]*")


class HostMount(msgspec.Struct, frozen=True):
    """A directory of the machine, shown to the job at `target`."""

    source: str
    target: str
    read_only: bool = False


class NewJob(msgspec.Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    namespace: str = "default"
    workers: int = 2
    slots: int = 1
    implementation: str = OPEN_MPI
    image: str = "local"
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[HostMount, ...] = ()
    as_is: bool = False
    backoff_limit: int | None = None

    def mpijob(self) -> MPIJob:
        ranks = self.workers * self.slots
        command = self.command if self.as_is else mpi_command(self.command, ranks)
        return MPIJob(
            metadata=ObjectMeta(name=self.name, namespace=self.namespace),
            spec=MPIJobSpec(
                slots_per_worker=self.slots,
                mpi_implementation=self.implementation,
                run_policy=RunPolicy(clean_pod_policy="Running", backoff_limit=self.backoff_limit),
                mpi_replica_specs={
                    LAUNCHER: ReplicaSpec(replicas=1, template=self._template(command)),
                    WORKER: ReplicaSpec(replicas=self.workers, template=self._template(())),
                },
            ),
        )

    def _template(self, command: tuple[str, ...]) -> PodTemplate:
        container: dict[str, Any] = {"name": "mpi", "image": self.image}
        if command:
            container["command"] = [_literal(word) for word in command]
        if self.env:
            container["env"] = _variables(self.env)
        spec: dict[str, Any] = {"containers": [container]}
        add_mounts(spec, self.mounts)
        return PodTemplate.of({"spec": spec})


def add_mounts(spec: dict[str, Any], mounts: tuple[HostMount, ...]) -> None:
    """Adds each mount as a hostPath volume to a pod spec under construction."""
    if not mounts:
        return
    container = spec["containers"][0]
    volumes = spec["volumes"] = [*(spec.get("volumes") or ())]
    shown = container["volumeMounts"] = [*(container.get("volumeMounts") or ())]
    taken = {volume["name"] for volume in volumes}
    free = (name for name in map("mount-{}".format, count()) if name not in taken)
    for name, mount in zip(free, mounts, strict=False):
        volumes.append({"name": name, "hostPath": {"path": mount.source}})
        shown.append({"name": name, "mountPath": mount.target, "readOnly": mount.read_only})


def with_additions(
    job: MPIJob, env: tuple[tuple[str, str], ...], mounts: tuple[HostMount, ...]
) -> MPIJob:
    """A job from a file, with variables and mounts added to launcher and workers alike."""
    if not env and not mounts:
        return job
    replicas = {}
    for role, replica in (job.spec.mpi_replica_specs or {}).items():
        content = replica.template.content
        container = content["spec"]["containers"][0]
        if env:
            container["env"] = [*(container.get("env") or ()), *_variables(env)]
        add_mounts(content["spec"], mounts)
        replicas[role] = msgspec.structs.replace(replica, template=PodTemplate.of(content))
    spec = msgspec.structs.replace(job.spec, mpi_replica_specs=replicas)
    return msgspec.structs.replace(job, spec=spec)


def name_for(command: tuple[str, ...]) -> str:
    """A short valid job name that reminds of the command: `python train.py` is `train`."""
    scripts = [word for word in command if PurePosixPath(word).suffix in _SCRIPTS]
    return next(filter(None, map(_as_name, (*scripts, *command))), "job")


def _as_name(word: str) -> str:
    """The word as a job name; empty where it says nothing about the job or makes no name."""
    path = PurePosixPath(word)
    if word.startswith("-") or "=" in word or len(word.split()) != 1:
        return ""
    if path.name in _STARTERS or _PYTHON.fullmatch(path.name):
        return ""
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:LONGEST_NAME].rstrip("-")
    return name if name[:1].isalpha() else ""


def _variables(env: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"name": name, "value": _literal(value)} for name, value in env]


def _literal(text: str) -> str:
    """The text such that a kubelet, which reads `$(NAME)` and `$$`, makes it what it was."""
    return text.replace("$", "$$")
