"""Elasticsearch or OpenSearch: one fixed search for each page. Its values are JSON, so none of them
can be read as anything else. Times are those of the field `@timestamp`, to the millisecond."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.server.log_stores.asking import SECONDS, Store, unread
from mpi_trainer.server.log_stores.pages import Asked, Entry, nanoseconds
from mpi_trainer.server.log_stores.settings import LogStoreSettings

TIME: Final = "@timestamp"
TEXTS: Final = ("message", "log")
"""where collectors put what a pod wrote; the first that is there"""
_KEYWORD: Final = ".keyword"
_PARAMETERS: Final = {"allow_partial_search_results": "false", "ignore_unavailable": "true"}
_MILLI: Final = 1_000_000


class _Hit(msgspec.Struct, frozen=True):
    source: dict[str, Any] = msgspec.field(name="_source", default_factory=dict)


class _Hits(msgspec.Struct, frozen=True):
    hits: tuple[_Hit, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    hits: _Hits = _Hits()
    timed_out: bool = False


class Elasticsearch:
    """As one caller asks it; `token` is theirs."""

    def __init__(self, settings: LogStoreSettings, token: str) -> None:
        self._index = settings.index
        self._names = settings.names
        self._store = Store(settings, token)

    async def page(self, asked: Asked) -> Sequence[Entry]:
        path = f"/{self._index}/_search"
        return self._read(await self._store.ask(path, _PARAMETERS, self._search(asked)))

    def _search(self, asked: Asked) -> Mapping[str, Any]:
        namespace, pod = self._names
        time = {"gte": asked.start // _MILLI, "lte": asked.end // _MILLI, "format": "epoch_millis"}
        return {
            "size": asked.limit,
            "sort": [{TIME: {"order": "desc", "unmapped_type": "date"}}],
            "query": {
                "bool": {
                    "filter": [
                        {"term": {namespace: asked.namespace}},
                        {"regexp": {pod: {"value": asked.pods, "flags": "NONE"}}},
                        {"range": {TIME: time}},
                    ]
                }
            },
            "_source": [TIME, *TEXTS, *(name.removesuffix(_KEYWORD) for name in self._names)],
            "track_total_hits": False,
            "timeout": f"{SECONDS:g}s",
        }

    def _read(self, body: bytes) -> list[Entry]:
        try:
            answer = typed.decode(body, _Answer)
            found = [self._entry(one.source) for one in answer.hits.hits]
        except (msgspec.MsgspecError, ValueError, OverflowError) as error:
            raise unread("its answer cannot be read") from error
        if answer.timed_out:
            raise unread("it did not come to an end with its search")
        # Those of one time come in the order in which they were stored.
        return sorted(found, key=lambda entry: entry.at)

    def _entry(self, source: Mapping[str, Any]) -> Entry:
        namespace, pod = (_text(source, name.removesuffix(_KEYWORD)) for name in self._names)
        written = next((source[name] for name in TEXTS if name in source), "")
        return Entry(_time(source.get(TIME)), namespace, pod, str(written))


def _text(source: Mapping[str, Any], path: str) -> str:
    """Of a record, whether its names are nested or written with dots."""
    found: Any = source.get(path)
    if found is None:
        found = source
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def _time(value: Any) -> int:
    """Nanoseconds; ValueError."""
    if isinstance(value, int):
        return value * _MILLI
    at = datetime.fromisoformat(str(value))
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return nanoseconds(at) // _MILLI * _MILLI
