"""How a job went over time: what it printed of itself, and what its pods used."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from typing import Annotated, Final

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import mpijob
from mpi_trainer.diagnose.series import Recorder
from mpi_trainer.sdk.backends.backend import JobDetails, LogQuery
from mpi_trainer.server import values
from mpi_trainer.server.endpoint import Answer, Call
from mpi_trainer.server.endpoints import logs
from mpi_trainer.server.prometheus import MOST_PODS, PodSeries, Window

READ_PODS: Final = "read-pods"
MOST_LINES: Final = 10_000
LOG: Final = "log"
_NO_PROMETHEUS: Final = (
    "usage over time is not known: the server has no Prometheus to ask (`--prometheus`)"
)
_NO_HISTORY: Final = "usage over time is not kept on this machine; `metrics` has what is used now"


class HistoryQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The last minutes of the job: until now, or until its end."""

    minutes: Annotated[int, msgspec.Meta(ge=1, le=7 * 24 * 60)] = 60


class ShortHistoryQuery(HistoryQuery, frozen=True, rename="camel"):
    namespace: str = ""


async def history(call: Call) -> Answer:
    query: HistoryQuery = call.query
    details = await call.backend.details(call.key)
    end = min(details.job.times.completed or call.now, call.now)
    start = end - timedelta(minutes=query.minutes)
    window = Window(start.timestamp(), end.timestamp())
    asked = LogQuery(since=start, tail=MOST_LINES, held=bounds.HELD_OF_MANY, room=logs.ANSWER_BYTES)
    own, notes = await _own(call, asked)
    usage, more = await _usage(call, details, window)
    ranks = _ranks(details)
    series = (*own, *(_series(one, ranks) for one in usage))
    source = " and ".join([*([LOG] if own else []), *(["Prometheus"] if usage else [])])
    return Answer(values.MetricsHistory(series, source, (*notes, *more)))


async def _own(
    call: Call, query: LogQuery
) -> tuple[tuple[values.MetricSeries, ...], tuple[str, ...]]:
    """What the program said of itself."""
    recorder, count = Recorder(), 0
    async with aclosing(call.backend.logs(call.key, query)) as lines:
        async for line in lines:
            count += 1
            recorder.see(line.time.timestamp(), line.text, line.pod, line.rank)
    found = tuple(
        values.MetricSeries(one.name, one.pod, one.rank, "", one.points)
        for one in recorder.series()
    )
    notes = []
    if count >= MOST_LINES:
        notes.append(f"only the last {MOST_LINES} lines of the output were read")
    if recorder.dropped:
        notes.append("the program prints more values than can be shown: some are left out")
    return found, tuple(notes)


async def _usage(
    call: Call, details: JobDetails, window: Window
) -> tuple[tuple[PodSeries, ...], tuple[str, ...]]:
    """Asked of Prometheus only for who may list pods of the namespace, as the cluster says now."""
    if call.prometheus is None:
        local = call.backend.name == "local"
        return (), (_NO_HISTORY if local else _NO_PROMETHEUS,)
    allowed = await call.backend.permissions(call.namespace)
    for one in allowed:
        if one.action == READ_PODS and not one.allowed:
            return (), (f"usage over time is not shown: {one.reason}",)
    if not any(one.action == READ_PODS for one in allowed):
        return (), ("usage over time is not shown: your rights are not known",)
    return await call.prometheus.usage(call.namespace, _pods(details), window)


def _pods(details: JobDetails) -> list[str]:
    """Those that are there, and workers that are gone but have names of their own."""
    job = details.job
    gone = range(min(job.workers, MOST_PODS)) if job.kind == mpijob.KIND else ()
    names = [*(one.name for one in details.pods), *_ranks(details)]
    return [*dict.fromkeys((*names, *(f"{job.name}-worker-{index}" for index in gone)))]


def _ranks(details: JobDetails) -> dict[str, int | None]:
    """The rank of each pod that runs one alone."""
    found: dict[str, int | None] = {}
    for one in details.ranks:
        found[one.pod] = None if one.pod in found else one.rank
    return found


def _series(one: PodSeries, ranks: dict[str, int | None]) -> values.MetricSeries:
    return values.MetricSeries(one.name, one.pod, ranks.get(one.pod), one.unit, one.points)


SHORT: Final[dict[type[msgspec.Struct], type[msgspec.Struct]]] = {HistoryQuery: ShortHistoryQuery}
