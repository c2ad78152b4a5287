"""Volumes and where they are mounted.

The job adds volumes of its own to every pod: a template may mount them, not redefine them, and
must leave their folders in the first container free.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api import names
from mpi_trainer.api.errors import DUPLICATE, INVALID, FieldError, Path
from mpi_trainer.api.kinds.mpijob import LAUNCHER, MPIJob
from mpi_trainer.api.kinds.pods import PodSpec, Volume, VolumeMount
from mpi_trainer.api.validation import rules

SSH_VOLUME = "ssh-auth"
CONFIG_VOLUME = "mpi-job-config"
CONFIG_FOLDER = "/etc/mpi"


class AddedVolumes(msgspec.Struct, frozen=True):
    """What the job itself adds to a pod: volume name → folder in the first container."""

    folders: Mapping[str, str]


def added_by_mpijob(job: MPIJob, role: str) -> AddedVolumes:
    folders = {SSH_VOLUME: job.spec.ssh_auth_mount_path or ""}
    return AddedVolumes({**folders, CONFIG_VOLUME: CONFIG_FOLDER} if role == LAUNCHER else folders)


def errors(path: Path, spec: PodSpec, own: AddedVolumes) -> rules.Errors:
    yield from _volumes((*path, "volumes"), spec.volumes, own)
    known = {volume.name for volume in spec.volumes} | set(own.folders)
    for n, container in enumerate(spec.init_containers):
        where = (*path, "initContainers", n, "volumeMounts")
        yield from _mounts(where, container.volume_mounts, known, {})
    for n, container in enumerate(spec.containers):
        where = (*path, "containers", n, "volumeMounts")
        taken = {folder: name for name, folder in own.folders.items()} if n == 0 else {}
        yield from _mounts(where, container.volume_mounts, known, taken)


def _volumes(path: Path, volumes: tuple[Volume, ...], own: AddedVolumes) -> rules.Errors:
    taken: set[str] = set()
    for n, volume in enumerate(volumes):
        where = (*path, n, "name")
        if not volume.name:
            yield rules.required(where, "a volume must have a name", "add for example `name: data`")
            continue
        yield from rules.name_errors(where, volume.name, names.dns1123_label(volume.name))
        if volume.name in own.folders:
            rule = "the job adds a volume of this name itself"
            yield FieldError(where, DUPLICATE, volume.name, rule, "give yours another name")
        elif volume.name in taken:
            rule = "another volume of the pod has this name"
            yield FieldError(where, DUPLICATE, volume.name, rule, "give each volume its own name")
        taken.add(volume.name)
        yield from _source((*path, n), volume)


def _source(path: Path, volume: Volume) -> rules.Errors:
    wanted = (
        ("hostPath", "path", volume.host_path and volume.host_path.path),
        ("secret", "secretName", volume.secret and volume.secret.secret_name),
        (
            "persistentVolumeClaim",
            "claimName",
            volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name,
        ),
    )
    for kind, field, value in wanted:
        if value == "":
            rule = "must say what to mount"
            yield rules.required((*path, kind, field), rule, f"set {field}")
    size = volume.empty_dir.size_limit if volume.empty_dir else None
    if size is not None:
        yield from rules.quantity((*path, "emptyDir", "sizeLimit"), size)


def _mounts(
    path: Path, mounts: tuple[VolumeMount, ...], known: set[str], own: Mapping[str, str]
) -> rules.Errors:
    taken = dict(own)
    for n, mount in enumerate(mounts):
        yield from _mount((*path, n), mount, known)
        folder = mount.mount_path
        if folder and folder in taken:
            rule = f"the volume `{taken[folder]}` is mounted there already"
            where = (*path, n, "mountPath")
            yield FieldError(where, DUPLICATE, folder, rule, "mount each volume in its own folder")
        taken[folder] = mount.name


def _mount(path: Path, mount: VolumeMount, known: set[str]) -> rules.Errors:
    where = (*path, "name")
    if not mount.name:
        yield rules.required(where, "must name a volume of the pod", "add the volume's name")
    elif mount.name not in known:
        remedy = f"add a volume named `{mount.name}` under volumes"
        rule = "the pod has no volume of this name"
        yield FieldError(where, INVALID, mount.name, rule, remedy)
    where = (*path, "mountPath")
    if not mount.mount_path:
        rule = "a volume must be mounted somewhere"
        yield rules.required(where, rule, "set an absolute path such as /data")
    elif ":" in mount.mount_path:
        rule = "must not contain `:`"
        yield FieldError(where, INVALID, mount.mount_path, rule, "choose another folder")
    inside = mount.sub_path
    if inside.startswith("/") or ".." in inside.split("/"):
        rule = "must be a relative path without `..`"
        where = (*path, "subPath")
        yield FieldError(where, INVALID, inside, rule, "name a folder inside the volume")


def is_absolute(path: str) -> bool:
    return path.startswith("/")
