"""What a job needs of this machine, checked before anything starts: its program, its files.

The error for a missing directory names its field and the command that makes it. Folders within a
PersistentVolumeClaim are made, as a kubelet makes a subPath. Danger: a directory can still go away
between this check and the start; then the pod's own error names it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from mpi_trainer.api import quantities
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.pods import Container, PodSpec
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.validation import resources
from mpi_trainer.layout.launch import LAUNCHERS
from mpi_trainer.local.errors import CannotApply, LocalError
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.pods import volumes
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.local.pods.volumes import PodVolumes

_PYTHON: Final = re.compile(r"python[0-9.]*")
MOST_WORKERS: Final = 256
_SYSTEM: Final = frozenset(
    f"/{name}" for name in ("", "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr")
)
_SHELLS_OWN: Final = frozenset({"cd", "source", ".", "export", "set", "ulimit", "alias", "eval"})


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


def check_fits(job: MPIJob) -> None:
    """LocalError for what no pod of this machine can be: one of too many, or without its system."""
    if job.workers > MOST_WORKERS:
        raise LocalError(
            f"the job has {job.workers} workers, and this machine runs at most {MOST_WORKERS} "
            "in a job",
            "Use fewer workers with more slots each, or run it on a cluster.",
        )
    for replica in (job.launcher, job.worker):
        for container in replica.template.view.spec.containers[:1]:
            for mount in container.volume_mounts:
                if os.path.normpath(mount.mount_path) in _SYSTEM:
                    raise CannotApply(
                        f"mountPath {mount.mount_path}: a volume there would hide the system's "
                        "own files, which every program needs",
                        "Mount it at a path of its own, such as /data, or below "
                        f"{mount.mount_path}.",
                    )


def check_command(words: Sequence[str], settings: LocalSettings) -> None:
    """LocalError where a command that was typed cannot run: no such program, or no such script.

    Only what is certain is refused: a program that is started by another one is not looked for.
    """
    program, *rest = words
    if program in _SHELLS_OWN:
        raise LocalError(
            f"`{program}` is a shell built-in, and this command is not run by a shell",
            f"Use a shell: `-- sh -c '{program} …'`.",
        )
    if program not in LAUNCHERS and not _found(program, settings):
        raise LocalError(f"program `{program}` not found", _program_hint(program, settings))
    if "/" in program and not _executable(Path(settings.cwd, program)):
        raise LocalError(f"{program} is not an executable file", _executable_hint(program))
    if not _PYTHON.fullmatch(PurePosixPath(program).name):
        return
    script = next((word for word in rest if not word.startswith("-")), "")
    if script.endswith(".py") and rest[0] == script and not _exists(script, settings):
        raise LocalError(f"no file {script} in {settings.cwd}", "Check its name and the folder.")


def _exists(path: str, settings: LocalSettings) -> bool:
    # A whole command in quotes may be longer than any name: `Path.exists` would raise.
    return os.path.exists(Path(settings.cwd, path))  # noqa: PTH110


def _found(program: str, settings: LocalSettings) -> bool:
    if "/" in program:
        return _exists(program, settings)
    return shutil.which(program, path=dict(settings.env).get("PATH")) is not None


def _program_hint(program: str, settings: LocalSettings) -> str:
    if " " in program and shutil.which(program.split()[0]):
        return f"Give its words without quotes around all of them: `-- {program}`."
    here = Path(settings.cwd, program)
    if program.endswith(".py") and not _executable(here):
        return _executable_hint(program)
    if _exists(program, settings):
        return f"Programs of the folder need their path: `./{program}`."
    folders = dict(settings.env).get("PATH", "").split(":")
    known = {one.name for folder in folders for one in _entries(Path(folder))}
    meant = nearest(program, known)
    return f"Did you mean `{meant}`?" if meant else "Install it, or put its folder on PATH."


def _executable(path: Path) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def _executable_hint(program: str) -> str:
    if program.endswith(".py"):
        return f"Run a script with its interpreter: `-- python {program}`."
    return f"Make it executable with `chmod +x {program}`, or check the path."


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def check_resources(job: MPIJob) -> list[str]:
    """Notes about CPUs, memory and GPUs that the job asks for and this machine does not have."""
    container = next(iter(job.worker.template.view.spec.containers), Container())
    wanted = {**container.resources.requests, **container.resources.limits}
    notes = []
    if resources.gpus(container) and not any(Path("/dev").glob("nvidia[0-9]*")):
        notes.append("the job asks for GPUs, and this machine has none: it runs without")
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name, limit, unit in (("cpu", os.cpu_count() or 1, "CPUs"), ("memory", have, "memory")):
        if quantities.parse(wanted.get(name, 0)) > limit:
            notes.append(f"a worker asks for more {unit} than this machine has: {wanted[name]}")
    return notes


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
