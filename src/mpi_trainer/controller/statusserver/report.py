"""What a training program says of itself, read from a body of its own making. Pure.

The bounds are those of the TrainJob's definition, so that what is taken here the API server takes
too. Two forms are written: `status.trainerStatus`, the public API's, and the annotation that
OpenShift AI's dashboard and SDK read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import msgspec

from mpi_trainer.api.kinds.annotations import TRACKING, TRAINER_STATUS

LARGEST: Final = 64 * 1024
"""bytes of a body"""
MOST_METRICS: Final = 256
_TRACKED: Final = ("true", "enabled")

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Metric(msgspec.Struct, frozen=True):
    name: Word
    value: Word


class Report(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    last_updated_time: Moment
    progress_percentage: Percent | None = None
    estimated_remaining_seconds: Seconds | None = None
    metrics: Annotated[tuple[Metric, ...], msgspec.Meta(max_length=MOST_METRICS)] = ()

    def wire(self) -> dict[str, Any]:
        """As Kubernetes writes it: times in whole seconds of UTC."""
        moment = self.last_updated_time.astimezone(UTC)
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {**fields, "lastUpdatedTime": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}


class Body(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    trainer_status: Report | None = None


class BadReport(ValueError):
    """In words for who sent it."""


_DECODER: Final = msgspec.json.Decoder(Body)


def read(body: bytes) -> Report | None:
    """None where it says nothing; BadReport where it is none."""
    try:
        found = _DECODER.decode(body).trainer_status
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadReport(f"the body is no report: {error}") from None
    if found is not None and not 1970 <= found.last_updated_time.year <= 9998:
        raise BadReport("trainerStatus.lastUpdatedTime: no time of a running program")
    return found


def status_patch(report: Report, version: str) -> dict[str, Any]:
    """A merge patch that replaces the whole block, of the job at this version."""
    bare: dict[str, Any] = {
        "progressPercentage": None,
        "estimatedRemainingSeconds": None,
        "metrics": None,
    }
    said = {"trainerStatus": {**bare, **report.wire()}}
    return {"metadata": {"resourceVersion": version}, "status": said}


def is_tracked(annotations: Mapping[str, str]) -> bool:
    """Whether OpenShift AI's form of it is wanted too."""
    return annotations.get(TRACKING) in _TRACKED


def annotation_patch(report: Report, uid: str) -> dict[str, Any]:
    """Metrics whose names begin with `eval` are those of evaluation there."""
    fields = {name: value for name, value in report.wire().items() if name != "metrics"}
    metrics = {one.name: _number(one.value) for one in report.metrics}
    evaluated = {name: value for name, value in metrics.items() if name.startswith("eval")}
    trained = {name: value for name, value in metrics.items() if name not in evaluated}
    left = _words(report.estimated_remaining_seconds)
    said = {
        **fields,
        **({"estimatedRemainingTimeSummary": left} if left else {}),
        **({"trainMetrics": trained} if trained else {}),
        **({"evalMetrics": evaluated} if evaluated else {}),
    }
    text = msgspec.json.encode(said).decode()
    return {"metadata": {"uid": uid, "annotations": {TRAINER_STATUS: text}}}


def _number(text: str) -> float | str:
    """A number where it is one that JSON has."""
    try:
        found = float(text)
    except ValueError:
        return text
    return found if abs(found) < float("inf") else text


def _words(seconds: int | None) -> str:
    """The two largest units, in words."""
    if not seconds:
        return ""
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86400
    units = (("day", days), ("hour", hours), ("minute", 0 if days else minutes))
    parts = [f"{count} {unit}{'' if count == 1 else 's'}" for unit, count in units if count]
    return " ".join(parts[:2]) or "less than a minute"
