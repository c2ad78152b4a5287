"""One object as it was read, with everything that is wrong or suspicious about it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import FieldError, Position, under
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml.attachments import ConfigMap, Secret
from mpi_trainer.api.yaml.decode import Decoded
from mpi_trainer.api.yaml.documents import Document

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.runtime import Runtime
    from mpi_trainer.api.kinds.trainjob import TrainJob


class LoadedObject(msgspec.Struct, frozen=True):
    """One object read, and what was found on the way. Not to be used where there are errors."""

    value: MPIJob | TrainJob | Runtime | ConfigMap | Secret | None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    named_at: Position | None = None


def beyond(decoded: Decoded[Any], found: Iterable[FieldError]) -> list[FieldError]:
    """`found`, less what only follows from a structural error; as many as anybody reads."""
    left = (error for error in found if not under(error.path, decoded.doubtful))
    return list(itertools.islice(left, bounds.ERRORS))


def located(document: Document, found: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """`found` with the places where the document has the fields, in their order."""
    placed = (msgspec.structs.replace(e, position=document.position(e.path)) for e in found)
    return tuple(sorted(placed, key=lambda e: e.position or document.position(())))
