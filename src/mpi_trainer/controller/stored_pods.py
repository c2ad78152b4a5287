"""What the store keeps of pods and Jobs, which stay by the ten thousand after their MPIJobs.

Of a pod that has ended, how it ended; of annotations, ours. Texts that thousands have in common are
kept once.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mpi_trainer.api.kinds import pod_status
from mpi_trainer.api.kinds.annotations import ours
from mpi_trainer.controller.objects import Job, Pod
from mpi_trainer.runtime.partial import Meta

replace = msgspec.structs.replace

_MANY: Final = 10_000
_texts: dict[str, str] = {}


def kept_pod(found: Pod) -> Pod:
    meta, status = kept_metadata(found.metadata), found.status
    if status.phase not in pod_status.ENDED:
        return replace(found, metadata=meta)
    kept = tuple(one for one in status.conditions if one.type == pod_status.DISRUPTION_TARGET)
    return replace(found, metadata=meta, status=replace(status, conditions=kept))


def kept_job(found: Job) -> Job:
    return replace(found, metadata=kept_metadata(found.metadata))


def kept_metadata(meta: Meta) -> Meta:
    owners = tuple(
        replace(one, kind=_text(one.kind), api_version=_text(one.api_version))
        for one in meta.owner_references
    )
    labels = {_text(name): _text(text) for name, text in meta.labels.items()}
    return replace(
        meta,
        namespace=_text(meta.namespace),
        labels=labels,
        annotations=ours(meta.annotations),
        owner_references=owners,
    )


def _text(text: str) -> str:
    """The same text, and the same object for all that have it."""
    if len(_texts) >= _MANY:
        _texts.clear()
    return _texts.setdefault(text, text)
