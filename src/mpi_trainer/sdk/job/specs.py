"""Jobs described role by role, where a few words are not enough (AC-7): the pods of a role, what
they need of a node, and the volumes that they see. Pure.

`MPIJobSpec` says what launcher and workers are; `manifest` spells it out as the MPIJob that any
cluster takes. The conveniences of the interfaces apply (CTL-15): a command that starts no ranks
is run by `mpirun`, slots are the GPUs of a worker, and pods are removed when the job has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds import mpijob as api
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, OPEN_MPI, WORKER, MPIJob, RunPolicy
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.spelling import nearest
from mpi_trainer.layout.launch import mpi_command

LOCAL_IMAGE = "local"
NVIDIA = "nvidia.com/gpu"

Amount = str | int | float


class ResourceRequirements(msgspec.Struct, frozen=True):
    """The resources of one worker, both as requests and as limits.

    cpu: CPUs, such as `4` or `"500m"`. memory: such as `"16Gi"`. gpu: whole GPUs; a worker gets
    as many ranks as GPUs unless `slots` says otherwise. gpu_type: the device's resource name.
    other: any more resources by name, such as `{"rdma/ib": 1}`.
    """

    cpu: Amount | None = None
    memory: Amount | None = None
    gpu: int = 0
    gpu_type: str = NVIDIA
    other: Mapping[str, Amount] = {}


def amounts(needs: ResourceRequirements) -> dict[str, Amount]:
    """By resource name, as a container asks for them."""
    named = {"cpu": needs.cpu, "memory": needs.memory, needs.gpu_type: needs.gpu or None}
    return {**{k: v for k, v in named.items() if v is not None}, **needs.other}


class VolumeMount(msgspec.Struct, frozen=True):
    """Shows a volume at `mount_path` in the launcher and every worker.

    Name one source: claim (a PersistentVolumeClaim), host_path (a directory of the machine),
    config_map, secret, or empty_dir=True (scratch space of each pod).
    """

    mount_path: str
    claim: str = ""
    host_path: str = ""
    config_map: str = ""
    secret: str = ""
    empty_dir: bool = False
    sub_path: str = ""
    read_only: bool = False
    name: str = ""
    """a PersistentVolumeClaim or a data connection of the namespace, whichever there is"""


_KEYS: Final = {
    "name": "name",
    "mountPath": "mount_path",
    "subPath": "sub_path",
    "readOnly": "read_only",
}


def named_mounts(given: Sequence[VolumeMount | Mapping[str, Any]]) -> tuple[VolumeMount, ...]:
    """Volume mounts, of which some are written as a container has them.

    Raises:
        ValueError: One of them is not; says which, and how it should be.
    """
    return tuple(
        one if isinstance(one, VolumeMount) else _named_mount(one, f"volume_mounts[{n}]")
        for n, one in enumerate(given)
    )


def _named_mount(given: Mapping[str, Any], place: str) -> VolumeMount:
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{place}: must be a VolumeMount or a dict such as "
            '{"name": "training-data", "mountPath": "/data"}'
        )
    for key in given:
        if key not in _KEYS:
            meant = nearest(str(key), [*_KEYS])
            remedy = f"did you mean `{meant}`?" if meant else f"it may have {', '.join(_KEYS)}"
            raise ValueError(f"{place}: unknown key {str(key)[:60]!r}; {remedy}")
    for key in ("name", "mountPath"):
        if not isinstance(given.get(key), str) or not given[key]:
            raise ValueError(f"{place}.{key}: must be a non-empty string")
    try:
        return msgspec.convert({_KEYS[key]: value for key, value in given.items()}, VolumeMount)
    except msgspec.ValidationError as error:
        raise ValueError(f"{place}: {error}") from error


def with_volume(job: MPIJob, name: str, source: Mapping[str, Any]) -> MPIJob:
    """The job whose volume that was made for the name `name` has this source."""
    replicas = {}
    for role, replica in (job.spec.mpi_replica_specs or {}).items():
        content = replica.template.content
        for volume in content["spec"].get("volumes") or ():
            if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
                del volume["persistentVolumeClaim"]
                volume.update(source)
        replicas[role] = msgspec.structs.replace(replica, template=PodTemplate.of(content))
    spec = msgspec.structs.replace(job.spec, mpi_replica_specs=replicas)
    return msgspec.structs.replace(job, spec=spec)


def volume_source(mount: VolumeMount) -> dict[str, Any]:
    """The volume as a pod spec has it, without its name; ValueError unless it has one source."""
    claim = mount.claim or mount.name
    named: dict[str, Any] = {
        "persistentVolumeClaim": claim and {"claimName": claim},
        "hostPath": mount.host_path and {"path": mount.host_path},
        "configMap": mount.config_map and {"name": mount.config_map},
        "secret": mount.secret and {"secretName": mount.secret},
    }
    sources = {kind: value for kind, value in named.items() if value}
    if mount.empty_dir:
        sources["emptyDir"] = {}
    if len(sources) != 1 or (mount.claim and mount.name):
        raise ValueError(
            f"the volume at {mount.mount_path} names {len(sources)} sources; name exactly one "
            "of claim, host_path, config_map, secret, empty_dir and name"
        )
    return sources


def volume_mount(mount: VolumeMount, name: str) -> dict[str, Any]:
    """The mount as a container has it."""
    made: dict[str, Any] = {"name": name, "mountPath": mount.mount_path}
    if mount.sub_path:
        made["subPath"] = mount.sub_path
    if mount.read_only:
        made["readOnly"] = True
    return made


class ReplicaSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one role.

    A worker needs no command: it serves ranks. `restart_policy` is Never, OnFailure or
    ExitCode; by default the launcher's is OnFailure and a worker's Never.
    """

    replicas: int = 1
    image: str = LOCAL_IMAGE
    command: Sequence[str] = ()
    resources: ResourceRequirements = ResourceRequirements()
    env: Mapping[str, str] = {}
    volume_mounts: Sequence[VolumeMount] = ()
    node_selector: Mapping[str, str] = {}
    restart_policy: str | None = None


class MPIJobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A job: its launcher, its workers, and how they run.

    `slots_per_worker` is by default the GPUs of a worker, else 1. With `as_is` the launcher's
    command is not put under `mpirun`.
    """

    launcher: ReplicaSpec
    worker: ReplicaSpec
    slots_per_worker: int | None = None
    mpi_implementation: str = OPEN_MPI
    run_policy: RunPolicy = RunPolicy()
    run_launcher_as_worker: bool = False
    launcher_creation_policy: str | None = None
    as_is: bool = False

    @property
    def slots(self) -> int:
        if self.slots_per_worker is not None:
            return self.slots_per_worker
        return max(self.worker.resources.gpu, 1)

    @property
    def ranks(self) -> int:
        return (self.worker.replicas + self.run_launcher_as_worker) * self.slots

    def manifest(self, name: str, namespace: str = "default") -> MPIJob:
        """The whole MPIJob under this name."""
        given = tuple(self.launcher.command)
        command = given if self.as_is or not given else mpi_command(given, self.ranks)
        policy = self.run_policy
        if policy.clean_pod_policy is None:
            policy = msgspec.structs.replace(policy, clean_pod_policy="Running")
        return MPIJob(
            metadata=ObjectMeta(name=name, namespace=namespace),
            spec=api.MPIJobSpec(
                slots_per_worker=self.slots,
                mpi_implementation=self.mpi_implementation,
                run_policy=policy,
                run_launcher_as_worker=self.run_launcher_as_worker or None,
                launcher_creation_policy=self.launcher_creation_policy,
                mpi_replica_specs={
                    LAUNCHER: _replica(self.launcher, command),
                    WORKER: _replica(self.worker, self.worker.command),
                },
            ),
        )


def _replica(role: ReplicaSpec, command: Sequence[str]) -> api.ReplicaSpec:
    return api.ReplicaSpec(
        replicas=role.replicas,
        restart_policy=role.restart_policy,
        template=PodTemplate.of({"spec": _pod(role, command)}),
    )


def _pod(role: ReplicaSpec, command: Sequence[str]) -> dict[str, Any]:
    """The pod spec; only what was said stands in it."""
    container: dict[str, Any] = {"name": "mpi", "image": role.image}
    if command:
        container["command"] = [literal(word) for word in command]
    if role.env:
        container["env"] = variables(role.env)
    if needs := amounts(role.resources):
        container["resources"] = {"requests": needs, "limits": needs}
    spec: dict[str, Any] = {"containers": [container]}
    if role.node_selector:
        spec["nodeSelector"] = dict(role.node_selector)
    if role.volume_mounts:
        named = [(f"volume-{n}", mount) for n, mount in enumerate(role.volume_mounts)]
        spec["volumes"] = [{"name": name, **volume_source(mount)} for name, mount in named]
        container["volumeMounts"] = [volume_mount(mount, name) for name, mount in named]
    return spec


def variables(env: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": literal(value)} for name, value in env.items()]


def literal(text: str) -> str:
    """The text such that a kubelet, which reads `$(NAME)` and `$$`, makes it what it was."""
    return text.replace("$", "$$")
