"""Why a job failed, beside how it ended: in the condition and events that say that it has. Pure.

The finding itself is kept with the attempt (`history`); here stand its cause and remedy in words.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.conditions import FAILED, TRUE, Condition
from mpi_trainer.api.kinds.trainjob import TrainJobCondition
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.diagnose.finding import Findings

C = TypeVar("C", Condition, TrainJobCondition)


def with_cause(message: str, found: Findings) -> str:
    """The message with the first finding, unless that is a mere guess or there is no room. Danger:
    it may come out of an annotation, which users can write: terminals obey nothing of it."""
    if not found or found[0].confidence == "possible":
        return message
    first, where = found[0], found[0].where()
    cause = f"{first.cause}: {first.title}{f' ({where})' if where else ''}."
    before = f"{message.rstrip('. ')}. "
    for said in (f"{cause} {first.remedy}", cause):
        if len(before) + len(said) <= bounds.MESSAGE and said.isprintable():
            return before + said
    return message


def conditions_with_cause(conditions: tuple[C, ...], found: Findings) -> tuple[C, ...]:
    """That of the failure says its cause too. Danger: once only, when the job fails."""
    return tuple(
        msgspec.structs.replace(one, message=with_cause(one.message, found))
        if one.type == FAILED and one.status == TRUE
        else one
        for one in conditions
    )


def events_with_cause(
    events: tuple[DecidedEvent, ...], failures: Collection[str], found: Findings
) -> tuple[DecidedEvent, ...]:
    """Those that tell one of these failures."""
    return tuple(
        msgspec.structs.replace(one, message=with_cause(one.message, found))
        if one.message in failures
        else one
        for one in events
    )
