"""The worker pods `<job>-worker-<index>`.

A large job's workers differ in name, host name and index only, so what they share is worked out
once and is one value in memory. Danger: whoever changed one pod in place would change them all.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mpi_trainer.layout.model import PodLayout
from mpi_trainer.render.frame import Frame, Object
from mpi_trainer.render.pods import metadata, pod


def workers(layouts: Iterable[PodLayout], frame: Frame) -> tuple[Object, ...]:
    made = []
    last: tuple[PodLayout, Object] | None = None
    for layout in layouts:
        if last is None or not _alike(last[0], layout):
            last = layout, pod(layout, frame)
        made.append(_worker(layout, last[1], frame))
    return tuple(made)


def _alike(one: PodLayout, other: PodLayout) -> bool:
    named = replace(other, name=one.name, index=one.index, hostname=one.hostname)
    return replace(named, labels=one.labels) == one


def _worker(layout: PodLayout, shared: Object, frame: Frame) -> Object:
    own = metadata(shared["metadata"], layout, frame)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": frame.metadata(layout.name, **own),
        "spec": {**shared["spec"], "hostname": layout.hostname},
    }
