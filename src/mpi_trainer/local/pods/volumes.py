"""A pod's volumes on this machine: what is shown at each mountPath.

emptyDir is a directory of the pod's own, hostPath the path itself, a ConfigMap or Secret its
files, and a PersistentVolumeClaim a directory that outlives the job. A volume of any other kind
has no local meaning: it is left out here and named by `applied`. No path of a job leaves the
volume that it is in. Danger: one emptyDir at two mountPaths is two directories here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.pods import Container, KeyToPath, PodSpec, Volume, VolumeMount
from mpi_trainer.local.errors import CannotApply
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.local.pods.pod import PodFile, PodMount

SHARED_MEMORY = "/dev/shm"


class PodVolumes(msgspec.Struct, frozen=True):
    """What the volumes of one container come to."""

    mounts: tuple[PodMount, ...] = ()
    files: tuple[PodFile, ...] = ()
    shm_bytes: int | None = None


def pod_volumes(
    spec: PodSpec, container: Container, materials: Materials, claims: Mapping[str, str]
) -> PodVolumes:
    """`claims` maps the name of a PersistentVolumeClaim to its directory."""
    by_name = {volume.name: volume for volume in spec.volumes}
    mounts: list[PodMount] = []
    files: list[PodFile] = []
    shm: int | None = None
    for mount in container.volume_mounts:
        volume = by_name.get(mount.name)
        if volume is None:
            continue
        if _target(mount) == SHARED_MEMORY and volume.empty_dir is not None:
            limit = volume.empty_dir.size_limit
            shm = None if limit is None else int(quantities.parse(str(limit)))
            continue
        placed = _files(volume, mount, materials)
        files += placed
        mounts += _mounts(volume, mount, placed, claims)
    return PodVolumes(tuple(mounts), tuple(files), shm)


def _target(mount: VolumeMount) -> str:
    return posixpath.normpath("/" + mount.mount_path.lstrip("/"))


def _mounts(
    volume: Volume, mount: VolumeMount, files: list[PodFile], claims: Mapping[str, str]
) -> list[PodMount]:
    target = _target(mount)
    if volume.empty_dir is not None:
        return [PodMount(None, target, mount.read_only)]
    if volume.config_map is not None or volume.secret is not None:
        is_file = any(file.path == target for file in files)
        return [] if is_file else [PodMount(None, target, True)]
    if volume.host_path is not None:
        return [PodMount(_below(volume.host_path.path, mount), target, mount.read_only)]
    if volume.persistent_volume_claim is not None:
        claim = volume.persistent_volume_claim
        folder = claims.get(claim.claim_name)
        if folder is None:
            raise CannotApply(
                f"volumes of {volume.name}: there is no directory for the claim {claim.claim_name}",
                f"Give one: `--claim {claim.claim_name}=DIRECTORY`.",
            )
        return [PodMount(_below(folder, mount), target, mount.read_only or claim.read_only)]
    return []


def _below(folder: str, mount: VolumeMount) -> str:
    return str(PurePosixPath(folder, _inside(mount.name, "subPath", mount.sub_path)))


def _inside(volume: str, field: str, path: str) -> PurePosixPath:
    """The path, which must not lead out of its volume."""
    relative = PurePosixPath(path)
    if relative.is_absolute() or ".." in relative.parts:
        raise CannotApply(
            f"volume {volume}: {field} {path!r} leaves the volume",
            "Give a relative path without `..`.",
        )
    return relative


class _Content(msgspec.Struct, frozen=True):
    """A ConfigMap or Secret as a volume shows it; `held` is None where nobody gave it."""

    kind: str
    name: str
    held: Mapping[str, bytes] | None
    items: tuple[KeyToPath, ...]
    mode: int
    optional: bool

    def files(self, volume: str) -> dict[PurePosixPath, tuple[int, bytes]]:
        """Mode and bytes by path in the volume; what is optional may be missing."""
        if self.held is None:
            if self.optional:
                return {}
            raise CannotApply(
                f"volume {volume}: there is no {self.kind} {self.name} in the job file",
                f"Put the {self.kind} into the same file as another document (`---`).",
            )
        files = {}
        for item in self.items or [KeyToPath(key=key, path=key) for key in sorted(self.held)]:
            content = self.held.get(item.key)
            if content is not None:
                path = _inside(volume, "path", item.path)
                files[path] = (self.mode if item.mode is None else item.mode, content)
            elif not self.optional:
                raise CannotApply(
                    f"volume {volume}: {self.kind} {self.name} has no key {item.key}",
                    f"The keys are {', '.join(sorted(self.held)) or 'none'}.",
                )
        return files


def _content(volume: Volume, materials: Materials) -> _Content | None:
    if volume.config_map is not None:
        config = volume.config_map
        held = materials.config_maps.get(config.name)
        mode, optional = config.default_mode, config.optional
        return _Content("ConfigMap", config.name, held, config.items, mode, optional)
    if volume.secret is not None:
        secret = volume.secret
        held = materials.secrets.get(secret.secret_name)
        mode, optional = secret.default_mode, secret.optional
        return _Content("Secret", secret.secret_name, held, secret.items, mode, optional)
    return None


def _files(volume: Volume, mount: VolumeMount, materials: Materials) -> list[PodFile]:
    """The files of the part of the volume that is mounted: all, a folder, or one file."""
    content = _content(volume, materials)
    if content is None:
        return []
    part = _inside(mount.name, "subPath", mount.sub_path)
    found = [
        PodFile(str(PurePosixPath(_target(mount), path.relative_to(part))), mode, data)
        for path, (mode, data) in content.files(volume.name).items()
        if path.is_relative_to(part)
    ]
    if mount.sub_path and not found and not content.optional:
        raise CannotApply(
            f"volume {volume.name}: {content.kind} {content.name} has nothing at "
            f"subPath {mount.sub_path!r}",
            "Name one of its keys, or the `path` of one of its items.",
        )
    return found
