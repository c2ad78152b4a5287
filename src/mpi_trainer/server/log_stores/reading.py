"""What a log store has of a job, as lines with their ranks, for whoever may read logs of pods in
the job's namespace now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, Literal

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.diagnose.rank_lines import RankLines
from mpi_trainer.sdk.backends.backend import JobView, LogLine, LogQuery
from mpi_trainer.sdk.backends.log_store import LogStore
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.server.log_stores.elasticsearch import Elasticsearch
from mpi_trainer.server.log_stores.loki import Loki
from mpi_trainer.server.log_stores.pages import Found, Pages, asked, newest
from mpi_trainer.server.log_stores.settings import Kind, LogStoreSettings

MORE: Final = "lines before this one are left out: the log store has more than one call reads"
MayRead = Callable[[str], Awaitable[bool]]


_KINDS: Final[Mapping[Kind, Callable[[LogStoreSettings, str], Pages]]] = {
    "loki": Loki,
    "elasticsearch": Elasticsearch,
}


class _Record(msgspec.Struct, frozen=True):
    """What OpenShift's collector makes of a line."""

    message: str
    kubernetes: msgspec.Raw


class Reviewed:
    """A store that is read for nobody who may not read the logs of pods."""

    def __init__(self, store: LogStore, may_read: MayRead) -> None:
        self._store = store
        self._may_read = may_read

    async def lines(self, job: JobView, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        if not await self._may_read(job.namespace):
            raise K8sApiException(
                f"you may not get pods/log in namespace {job.namespace}",
                HTTPStatus.FORBIDDEN,
                hint="Ask an administrator for the right.",
            )
        async with aclosing(self._store.lines(job, query)) as found:
            async for line in found:
                yield line


class Stored:
    """A store as the clients know one."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def lines(self, job: JobView, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        found = await newest(self._pages, asked(job, query))
        # Beside the event loop: thousands of lines are many milliseconds.
        for line in await asyncio.to_thread(lambda: list(_lines(found))):
            yield line


def of(settings: LogStoreSettings, token: str) -> LogStore:
    """The store of the settings, as the caller with this token asks it."""
    return Stored(_KINDS[settings.kind](settings, token))


def _lines(found: Found) -> Iterator[LogLine]:
    readers: dict[str, RankLines] = {}
    notes = (MORE,) if found.more else ()
    for entry in found.entries:
        role: Literal["launcher", "worker"] = "launcher" if "-launcher" in entry.pod else "worker"
        reader = readers.setdefault(entry.pod, RankLines(entry.pod, role, "stdout"))
        time = datetime.fromtimestamp(entry.at / 1e9, UTC)
        for line in reader.feed(_message(entry.text).encode(errors="replace") + b"\n"):
            yield LogLine(time, entry.pod, "stdout", line.rank, line.text, notes=notes)
            notes = ()


def _message(text: str) -> str:
    """What the pod wrote."""
    if text.startswith("{") and '"kubernetes"' in text:
        try:
            return typed.decode(text, _Record).message
        except (msgspec.MsgspecError, UnicodeError):
            return text
    return text
