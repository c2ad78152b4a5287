"""What the store keeps of pods and Jobs, which stay by the ten thousand after their jobs.

Of a pod that has ended, how it ended; of annotations, ours; and words that thousands have in common
are kept once.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mpi_trainer.api.kinds.annotations import ours
from mpi_trainer.controller.objects import Job, Pod
from mpi_trainer.runtime.partial import Meta

replace = msgspec.structs.replace

_MANY: Final = 10_000
_words: dict[str, str] = {}


def pod(found: Pod) -> Pod:
    meta, status = _shared(found.metadata), found.status
    if status.phase not in ("Succeeded", "Failed"):
        return replace(found, metadata=meta)
    told = tuple(one for one in status.conditions if one.type == "DisruptionTarget")
    return replace(found, metadata=meta, status=replace(status, conditions=told))


def job(found: Job) -> Job:
    return replace(found, metadata=_shared(found.metadata))


def _shared(meta: Meta) -> Meta:
    owners = tuple(
        replace(one, kind=_word(one.kind), api_version=_word(one.api_version))
        for one in meta.owner_references
    )
    labels = {_word(name): _word(text) for name, text in meta.labels.items()}
    return replace(
        meta,
        namespace=_word(meta.namespace),
        labels=labels,
        annotations=ours(meta.annotations),
        owner_references=owners,
    )


def _word(text: str) -> str:
    """The same text, and the same object for all that have it."""
    if len(_words) >= _MANY:
        _words.clear()
    return _words.setdefault(text, text)
