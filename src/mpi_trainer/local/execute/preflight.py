"""What a job needs of this machine's files, checked before anything starts.

The error for a missing directory names its field and the command that makes it. Folders within a
PersistentVolumeClaim are made, as a kubelet makes a subPath. Danger: a directory can still go away
between this check and the start; then the pod's own error names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.pods import Container, PodSpec
from mpi_trainer.local.errors import CannotApply, LocalError
from mpi_trainer.local.pods import volumes
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.local.pods.volumes import PodVolumes


def check(job: MPIJob, materials: Materials, claims: Mapping[str, str]) -> None:
    """Makes the claims' directories; raises LocalError for any other that is missing."""
    for folder in claims.values():
        _make(folder)
    for role, replica in (("Launcher", job.launcher), ("Worker", job.worker)):
        spec = replica.template.view.spec
        container = spec.containers[0] if spec.containers else Container()
        mounted = volumes.pod_volumes(spec, container, materials, claims)
        _check_sources(spec, mounted, claims)
        _check_working_dir(role, container.working_dir, mounted)


def _check_sources(spec: PodSpec, mounted: PodVolumes, claims: Mapping[str, str]) -> None:
    paths = {v.host_path.path: v.name for v in spec.volumes if v.host_path is not None}
    for mount in mounted.mounts:
        if mount.source is None or Path(mount.source).exists():
            continue
        if any(PurePosixPath(mount.source).is_relative_to(folder) for folder in claims.values()):
            _make(mount.source)
            continue
        volume = next((name for path, name in paths.items() if mount.source.startswith(path)), "")
        raise CannotApply(
            f"volume {volume}: this machine has no {mount.source} to show at {mount.target}",
            f"Create it with `mkdir -p {mount.source}`, or change its hostPath.",
        )


def _check_working_dir(role: str, path: str, mounted: PodVolumes) -> None:
    places = (*(m.target for m in mounted.mounts), *(f.path for f in mounted.files))
    given = any(PurePosixPath(place).is_relative_to(path) for place in places)
    inside = any(PurePosixPath(path).is_relative_to(m.target) for m in mounted.mounts)
    if path and not given and not inside and not Path(path).is_dir():
        raise CannotApply(
            f"workingDir of the {role}: this machine has no directory {path}, "
            "and the image, which may have one, is not used here",
            f"Show one there with `--mount .:{path}`, or change workingDir.",
        )


def _make(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(
            f"cannot make {folder}, which stands for a claim: {error.strerror}",
            "Give another directory with `--claim NAME=DIRECTORY`.",
        ) from error
