"""An MPIJob in the few words that make it, where they make all of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import LAUNCHER, OPEN_MPI, WORKER, MPIJob, RunPolicy
from mpi_trainer.layout.launch import mpi_command
from mpi_trainer.sdk.job.equivalents.manifest import comparable
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.sdk.job.specs import (
    LOCAL_IMAGE,
    NVIDIA,
    ResourceRequirements,
    VolumeMount,
    literal,
)

Object = Mapping[str, Any]
SHM = "/dev/shm"


class Words(msgspec.Struct, frozen=True):
    """`new`, and what is added to launcher and workers alike."""

    new: NewJob
    queue: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    priority_class: str = ""
    service_account: str = ""
    shm_size: str = ""

    @property
    def plain(self) -> bool:
        """Whether nothing is added."""
        return self == Words(self.new)


class _NoWords(Exception):
    """The job has something that no word says."""


def in_words(job: MPIJob) -> Words | None:
    """None where the words would make another job."""
    wanted = comparable(job)
    try:
        found = _read(job, wanted)
        makes = (one for one in _commands(found) if _same(one, wanted))
        return next(makes, None)
    except (_NoWords, InvalidJob, ValueError, KeyError, TypeError, AttributeError):
        return None  # a template may hold anything


def _commands(found: Words) -> Iterator[Words]:
    """What may have been given, with and without the `mpirun` that we put before it."""
    new = found.new
    ranks = new.workers * (new.slots or 1)
    before = mpi_command((), ranks)
    replace = msgspec.structs.replace
    if new.command[: len(before)] == before:
        yield replace(found, new=replace(new, command=new.command[len(before) :]))
    yield found
    yield replace(found, new=replace(new, as_is=True))


def _same(words: Words, wanted: Object) -> bool:
    if not words.new.command:
        return False
    made = comparable(words.new.mpijob())
    labels = dict(words.labels) | ({LABEL_QUEUE: words.queue} if words.queue else {})
    if labels:
        made["metadata"]["labels"] = labels
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        _add(replica["template"]["spec"], words)
    return made == wanted


def _add(pod: dict[str, Any], words: Words) -> None:
    if words.priority_class:
        pod["priorityClassName"] = words.priority_class
    if words.service_account:
        pod["serviceAccountName"] = words.service_account
    if words.shm_size:
        name = f"volume-{len(words.new.volumes)}"
        memory = {"medium": "Memory", "sizeLimit": words.shm_size}
        volume, mount = {"name": name, "emptyDir": memory}, {"name": name, "mountPath": SHM}
        pod["volumes"] = [*(pod.get("volumes") or ()), volume]
        (container,) = pod["containers"]
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def _read(job: MPIJob, wire: Object) -> Words:
    """What stands in the places that words fill; anything else shows when they are compared."""
    replicas = wire["spec"]["mpiReplicaSpecs"]
    pods = {role: replicas[role]["template"]["spec"] for role in (LAUNCHER, WORKER)}
    pod = pods[WORKER]
    (launcher,), (worker,) = (one["containers"] for one in pods.values())
    labels = dict(wire["metadata"].get("labels") or {})
    volumes, shm = _volumes(pod, worker)
    new = NewJob(
        name=job.name,
        command=tuple(map(_meant, launcher.get("command") or ())),
        namespace=job.namespace,
        workers=job.workers,
        slots=job.slots,
        implementation=job.spec.mpi_implementation or OPEN_MPI,
        image=worker.get("image") or LOCAL_IMAGE,
        env=tuple((one["name"], _meant(one.get("value", ""))) for one in worker.get("env") or ()),
        resources=_needs(worker),
        launcher_resources=_needs(launcher),
        volumes=volumes,
        node_selector=tuple((pod.get("nodeSelector") or {}).items()),
        run_policy=_policy(wire["spec"]["runPolicy"]),
    )
    return Words(
        new=new,
        queue=labels.pop(LABEL_QUEUE, ""),
        labels=tuple(labels.items()),
        priority_class=pod.get("priorityClassName") or "",
        service_account=pod.get("serviceAccountName") or "",
        shm_size=shm,
    )


def _policy(given: Object) -> RunPolicy:
    policy = msgspec.convert(given, RunPolicy)
    return msgspec.structs.replace(policy, suspend=policy.suspend or None)


def _meant(text: str) -> str:
    """The text that was given for it: `$$` is a dollar sign."""
    meant = text.replace("$$", "$")
    if literal(meant) != text:
        raise _NoWords
    return meant


def _needs(container: Object) -> ResourceRequirements:
    given = dict((container.get("resources") or {}).get("limits") or {})
    gpus = given.pop(NVIDIA, "0")
    return ResourceRequirements(
        cpu=given.pop("cpu", None), memory=given.pop("memory", None), gpu=int(gpus), other=given
    )


def _volumes(pod: Object, container: Object) -> tuple[tuple[VolumeMount, ...], str]:
    """Claims, and the size of shared memory, which comes last."""
    sources = {one["name"]: one for one in pod.get("volumes") or ()}
    found: list[VolumeMount] = []
    shm = ""
    for mount in container.get("volumeMounts") or ():
        source = sources[mount["name"]]
        if "persistentVolumeClaim" in source:
            found.append(
                VolumeMount(
                    mount["mountPath"],
                    claim=source["persistentVolumeClaim"]["claimName"],
                    sub_path=mount.get("subPath", ""),
                    read_only=bool(mount.get("readOnly")),
                )
            )
        elif "emptyDir" in source and mount["mountPath"] == SHM:
            shm = str(source["emptyDir"].get("sizeLimit") or "")
    return tuple(found), shm
