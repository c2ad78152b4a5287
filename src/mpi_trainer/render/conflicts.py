"""What keeps a job's Layout from becoming objects, though the job itself is valid.

A template that mounts something where the job must put its own files, and files that exceed a
ConfigMap. Told as field errors, before any object exists; nothing is ever left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpi_trainer.api.errors import DUPLICATE, TOO_LONG, FieldError, Path
from mpi_trainer.api.mpijob import LAUNCHER, WORKER
from mpi_trainer.layout.model import Layout, PodLayout
from mpi_trainer.render import configmaps
from mpi_trainer.render.frame import Frame
from mpi_trainer.render.volumes import claimed, plain

_SPECS = ("spec", "mpiReplicaSpecs")


def errors(layout: Layout, frame: Frame) -> tuple[FieldError, ...]:
    """All of them; the workers are alike, so the first speaks for all."""
    found = [*_mounts((*_SPECS, LAUNCHER), layout.launcher)]
    for worker in layout.workers[:1]:
        found += _mounts((*_SPECS, WORKER), worker)
    size = configmaps.size(frame)
    if size > configmaps.LARGEST:
        rule = f"the job's files take {size} bytes, and a ConfigMap holds {configmaps.LARGEST}"
        path = (*_SPECS, WORKER, "replicas")
        found.append(FieldError(path, TOO_LONG, len(layout.workers), rule, "use fewer workers"))
    return tuple(found)


def _mounts(path: Path, pod: PodLayout) -> Iterator[FieldError]:
    taken = set(claimed(pod))
    for n, mount in enumerate(pod.template.view.spec.containers[0].volume_mounts):
        if plain(mount.mount_path) in taken:
            where = (*path, "template", "spec", "containers", 0, "volumeMounts", n, "mountPath")
            rule = "the job puts files of its own there"
            yield FieldError(where, DUPLICATE, mount.mount_path, rule, "mount it elsewhere")
