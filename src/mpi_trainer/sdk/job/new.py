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

from mpi_trainer.api.kinds.mpijob import OPEN_MPI, MPIJob, RunPolicy
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.layout.launch import LAUNCHERS, SHELLS
from mpi_trainer.sdk.job.specs import (
    LOCAL_IMAGE,
    MPIJobSpec,
    ReplicaSpec,
    ResourceRequirements,
    VolumeMount,
    variables,
)

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
    """What `specs` describes role by role, for jobs whose pods are all alike.

    `resources` are a worker's; the launcher only starts ranks, and needs `launcher_resources` where
    something asks for them. No slots means one per GPU. It is tried once, unless `backoff_limit`
    or `run_policy` says otherwise.
    """

    name: str
    command: tuple[str, ...]
    namespace: str = "default"
    workers: int = 2
    slots: int | None = None
    implementation: str = OPEN_MPI
    image: str = LOCAL_IMAGE
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[HostMount, ...] = ()
    as_is: bool = False
    backoff_limit: int | None = None
    resources: ResourceRequirements = ResourceRequirements()
    launcher_resources: ResourceRequirements = ResourceRequirements()
    volumes: tuple[VolumeMount, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    run_policy: RunPolicy = RunPolicy()

    def mpijob(self) -> MPIJob:
        pod = ReplicaSpec(
            image=self.image,
            env=dict(self.env),
            volume_mounts=self.volumes,
            node_selector=dict(self.node_selector),
        )
        replace = msgspec.structs.replace
        policy = self.run_policy
        limits = (self.backoff_limit, policy.backoff_limit, 0)
        policy = replace(policy, backoff_limit=next(n for n in limits if n is not None))
        spec = MPIJobSpec(
            launcher=replace(pod, command=self.command, resources=self.launcher_resources),
            worker=replace(pod, replicas=self.workers, resources=self.resources),
            slots_per_worker=self.slots,
            mpi_implementation=self.implementation,
            run_policy=policy,
            as_is=self.as_is,
        )
        return with_additions(spec.manifest(self.name, self.namespace), (), self.mounts)


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
            container["env"] = [*(container.get("env") or ()), *variables(dict(env))]
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
