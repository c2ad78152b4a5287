"""What keeps a job's Layout from becoming objects, though the job itself is valid.

A template that mounts something where the job must put its own files, and files that exceed a
ConfigMap. Told as field errors, before any object exists; nothing is ever left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mpi_trainer.api.errors import DUPLICATE, TOO_LONG, FieldError, Path
from mpi_trainer.layout.agent.choice import container
from mpi_trainer.layout.model import Layout, PodLayout
from mpi_trainer.render import configmaps
from mpi_trainer.render.frame import Frame
from mpi_trainer.render.volumes import claimed, plain


class Places(msgspec.Struct, frozen=True):
    """Where a kind says what its launcher and its workers are, and how many workers."""

    launcher: Path
    worker: Path
    workers: Path


def errors(layout: Layout, frame: Frame, places: Places) -> tuple[FieldError, ...]:
    """All of them; the workers are alike, so the first speaks for all."""
    found = [*_mounts(places.launcher, layout.launcher)]
    for worker in layout.workers[:1]:
        found += _mounts(places.worker, worker)
    size = configmaps.size(frame)
    if size > configmaps.LARGEST:
        rule = f"the job's files take {size} bytes, and a ConfigMap holds {configmaps.LARGEST}"
        count = len(layout.workers)
        found.append(FieldError(places.workers, TOO_LONG, count, rule, "use fewer workers"))
    return tuple(found)


def _mounts(path: Path, pod: PodLayout) -> Iterator[FieldError]:
    taken = set(claimed(pod))
    containers = pod.template.view.spec.containers
    main = container(containers, pod.container)
    number = containers.index(main)
    for n, mount in enumerate(main.volume_mounts):
        if plain(mount.mount_path) in taken:
            inside = ("template", "spec", "containers", number, "volumeMounts", n, "mountPath")
            where = (*path, *inside)
            rule = "the job puts files of its own there"
            yield FieldError(where, DUPLICATE, mount.mount_path, rule, "mount it elsewhere")
