"""What became of a job's attempts: when each began and ended, why, and its last words. Pure.

It stands in one annotation of the job, because pods and their logs go with an attempt. The
annotation never takes more than `bounds.ATTEMPTS` bytes: newer attempts have more room than older
ones, and what had to be left out is said. A job that succeeded keeps no words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.api.names import SUBDOMAIN_LENGTH
from mpi_trainer.api.yaml import typed
from mpi_trainer.decide.observed import Record
from mpi_trainer.diagnose.finding import Findings, bounded

replace = msgspec.structs.replace

MOST = 32
"""attempts that are kept; the record counts all"""
LONGEST_MESSAGE = 240
"""characters of why an attempt ended, but for the last one, whose words the job's status has"""

SUSPENDED = "Suspended"
"""the reason of an attempt that a suspension has ended"""
SWITCHED_OFF = "keeping them is switched off"
NO_ROOM = "there was no room left for them"


# Anybody who may write the job may write the annotation.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class LogTail(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last lines that one pod printed, redacted; `cut` where lines before them are left out."""

    pod: str
    text: str = ""
    cut: bool = False


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One that has ended. `pod` is the launcher's; `rank` and `host` are whose fault it was, where
    that is known; `silence` is why there are no words. `cause` is the name of the first of
    `findings`, which only the last attempt keeps whole."""

    attempt: Number
    reason: str = ""
    message: str = ""
    began: datetime | None = None
    ended: datetime | None = None
    rank: Number | None = None
    host: str = ""
    pod: str = ""
    words: tuple[LogTail, ...] = ()
    silence: str = ""
    cause: str = ""
    findings: Findings = ()


History = tuple[Attempt, ...]

# Our own words for whose fault an end was.
_WHOSE = re.compile(r"\b[Rr]ank (?P<rank>\d{1,7}) on (?P<host>[-a-z0-9.]{1,253})")


def read(annotations: Mapping[str, str]) -> History:
    """Oldest first; nothing where the annotation is not what a controller wrote."""
    text = annotations.get(ATTEMPTS, "")
    if not text or len(text) > bounds.ATTEMPTS:
        return ()
    try:
        return tuple(_in_utc(one) for one in typed.decode(text, History))
    except (ValueError, OverflowError):
        return ()


def to_json(history: History) -> str | None:
    """As it is stored; None where there is nothing to store."""
    return msgspec.json.encode(history).decode() if history else None


def ended_attempt(before: Record, after: Record, now: datetime) -> Attempt | None:
    """The attempt that a decision ends which makes `before` into `after`, if it ends one."""
    if len(after.failures) > len(before.failures):
        failure = after.failures[-1]
        whose = _WHOSE.search(failure.message)
        return Attempt(
            failure.attempt,
            failure.reason,
            failure.message,
            ended=now,
            rank=int(whose["rank"]) if whose else None,
            host=whose["host"] if whose else failure.pod,
        )
    if after.attempt > before.attempt:
        return Attempt(before.attempt, SUSPENDED, ended=now)
    return None


def with_attempt(history: History, new: Attempt) -> History:
    """With this attempt, once; older words make room for newer ones."""
    known = [one for one in history if one.attempt < new.attempt][-MOST + 1 :]
    briefly = [replace(one, message=_short(one.message), findings=()) for one in known]
    message, host = new.message[: bounds.MESSAGE], new.host[:SUBDOMAIN_LENGTH]
    return _fitting((*briefly, replace(new, message=message, host=host)))


def without_output(history: History) -> History:
    """Without any words: what a job that succeeded keeps."""
    return tuple(replace(one, words=(), silence="", findings=()) for one in history)


def with_findings(attempt: Attempt, found: Findings) -> Attempt:
    """As much of why it failed as a job has room for."""
    kept = bounded(found)
    return replace(attempt, cause=kept[0].cause if kept else "", findings=kept)


def findings(history: History, attempt: int | None = None) -> Findings:
    """Why the last attempt failed, the most likely cause first; empty where nobody kept it, or
    where the last one that is known is not this one."""
    last = history[-1] if history else None
    known = last is not None and attempt in (None, last.attempt)
    return last.findings if last is not None and known else ()


def _fitting(history: History) -> History:
    """Each attempt, the newest first, has half of the room that is left."""
    left = bounds.ATTEMPTS - len("]") - sum(map(_bare, history))
    while left < 0:
        left, history = left + _bare(history[0]), history[1:]
    kept: list[Attempt] = []
    for one in reversed(history):
        fits = replace(one, words=_within(one.words, left // 2))
        if one.words and not fits.words:
            fits = replace(fits, silence=NO_ROOM)
        left -= _size(fits) - _size(replace(fits, words=()))
        kept.append(fits)
    return tuple(reversed(kept))


def _bare(one: Attempt) -> int:
    """Its size without words, and with the reason why they are not there."""
    return _size(replace(one, words=(), silence=max(one.silence, NO_ROOM, key=len)))


def _within(words: tuple[LogTail, ...], room: int) -> tuple[LogTail, ...]:
    """The launcher's words come first and go last."""
    kept: list[LogTail] = []
    for one in words:
        fits = _cut(one, room)
        if not fits.text:
            break
        kept.append(fits)
        room -= _size(fits)
    return tuple(kept)


def _cut(words: LogTail, room: int) -> LogTail:
    """Its last whole lines that take no more than so many bytes."""
    lines = words.text.split("\n")
    frame = _size(replace(words, text="", cut=True)) + 16
    first = len(lines)
    while first and (frame := frame + _size(lines[first - 1])) <= room:
        first -= 1
    if first == 0:
        return words
    return replace(words, text="\n".join(lines[first:]), cut=True)


def _size(value: object) -> int:
    return len(msgspec.json.encode(value)) + 1


def _short(text: str) -> str:
    """Without its middle: who ended stands first, and whose fault it was last."""
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: half - 1]}…{text[-half:]}"


def _in_utc(one: Attempt) -> Attempt:
    began, ended = (t and t.astimezone(UTC) for t in (one.began, one.ended))
    return replace(one, began=began, ended=ended)
