"""A job of a cloud service, whose machines all run ranks, as an MPIJob of whole-machine pods.

The first machine is the launcher, which runs ranks too, as it does there; the others are workers.
Danger: what the service did around the job (fetching data, keeping results) nobody does here; each
folder of it is a volume that must exist, or an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mpi_trainer.api import names
from mpi_trainer.api.kinds import mpijob
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.launch import mpi_command
from mpi_trainer.migrate import instances
from mpi_trainer.migrate.report import Converted, FieldReport, Object, complete

CONTAINER: Final = "mpi"
LONGEST_NAME: Final = 40
_ODD = re.compile(r"[^a-z0-9]+")


class Mount(msgspec.Struct, frozen=True):
    """A folder of the job: a claim's, or an empty one where `claim` is empty."""

    name: str
    path: str
    claim: str = ""
    read_only: bool = False


class CloudJob(msgspec.Struct, frozen=True):
    """`command` is one rank's, or starts the ranks itself."""

    name: str
    image: str
    command: tuple[str, ...]
    machines: int = 1
    slots: int = 1
    machine: Mapping[str, Any] = {}
    env: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    folder: str = ""
    shared_memory: str = ""
    deadline: int | None = None
    tries: int | None = None
    annotations: Mapping[str, str] = {}

    @property
    def ranks(self) -> int:
        return self.machines * self.slots


def kubernetes_name(text: str, otherwise: str = "job") -> str:
    """`text` as the name of a job or a claim."""
    name = _ODD.sub("-", text.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return name if names.dns1035_label(name) is None else f"{otherwise}-{name}".strip("-")


def finished(
    made: Converted, data: Mapping[str, Any], job: CloudJob, told: list[FieldReport]
) -> Converted:
    """`made` with the MPIJob, or with what our admission would say of it, at fields of `MPIJob`."""
    wanted = _mpijob(job)
    errors = load.job(wanted).errors
    if errors:
        of_it = [msgspec.structs.replace(one, path=(mpijob.KIND, *one.path)) for one in errors]
        return msgspec.structs.replace(made, errors=tuple(of_it))
    fields = complete(data, told)
    return msgspec.structs.replace(made, name=job.name, objects=(wanted,), fields=fields)


def _mpijob(job: CloudJob) -> Object:
    policy = {"activeDeadlineSeconds": job.deadline, "backoffLimit": job.tries}
    main = mpi_command(job.command, job.ranks)
    roles: Object = {LAUNCHER: {"replicas": 1, "template": _pod(job, main)}}
    if job.machines > 1:
        roles[WORKER] = {"replicas": job.machines - 1, "template": _pod(job, ())}
    notes = {"annotations": dict(job.annotations)} if job.annotations else {}
    return {
        "apiVersion": mpijob.API_VERSION,
        "kind": mpijob.KIND,
        "metadata": {"name": job.name, **notes},
        "spec": {
            "slotsPerWorker": job.slots,
            "runLauncherAsWorker": True,
            "runPolicy": {
                "cleanPodPolicy": "Running",
                **{name: value for name, value in policy.items() if value is not None},
            },
            "mpiReplicaSpecs": roles,
        },
    }


def _pod(job: CloudJob, command: tuple[str, ...]) -> Object:
    container: Object = {"name": CONTAINER, "image": job.image}
    if command:
        container["command"] = list(command)
    if job.folder:
        container["workingDir"] = job.folder
    if job.env:
        container["env"] = [{"name": name, "value": text} for name, text in job.env.items()]
    asked = instances.resources(job.machine)
    if asked:
        container["resources"] = asked
    volumes = [_volume(one) for one in job.mounts]
    mounts: list[Object] = [
        {"name": one.name, "mountPath": one.path, **({"readOnly": True} if one.read_only else {})}
        for one in job.mounts
    ]
    if job.shared_memory:
        memory = {"medium": "Memory", "sizeLimit": job.shared_memory}
        volumes.append({"name": "shared-memory", "emptyDir": memory})
        mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})
    spec: Object = {"containers": [{**container, **({"volumeMounts": mounts} if mounts else {})}]}
    return {"spec": {**spec, **({"volumes": volumes} if volumes else {})}}


def _volume(one: Mount) -> Object:
    if not one.claim:
        return {"name": one.name, "emptyDir": {}}
    claim = {"claimName": one.claim, **({"readOnly": True} if one.read_only else {})}
    return {"name": one.name, "persistentVolumeClaim": claim}
