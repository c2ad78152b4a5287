"""A Loki, such as that of OpenShift Logging: one fixed query for each page, with the namespace of
the job and the names that its pods have."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.server.log_stores.asking import Store, unread
from mpi_trainer.server.log_stores.pages import Asked, Entry
from mpi_trainer.server.log_stores.settings import LogStoreSettings
from mpi_trainer.server.prometheus import quoted


class _Stream(msgspec.Struct, frozen=True):
    stream: dict[str, str] = {}
    values: tuple[tuple[str, str], ...] = ()


class _Data(msgspec.Struct, frozen=True):
    result: tuple[_Stream, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    data: _Data = _Data()


class Loki:
    """As one caller asks it; `token` is theirs."""

    def __init__(self, settings: LogStoreSettings, token: str) -> None:
        self._names = settings.names
        self._store = Store(settings, token)

    async def page(self, asked: Asked) -> Sequence[Entry]:
        namespace, pod = self._names
        selector = f"{{{namespace}={quoted(asked.namespace)},{pod}=~{quoted(asked.pods)}}}"
        parameters = {
            "query": selector,
            "start": str(asked.start),
            "end": str(asked.end),
            "direction": "backward",
            "limit": str(asked.limit),
        }
        return self._read(await self._store.ask("/loki/api/v1/query_range", parameters))

    def _read(self, body: bytes) -> list[Entry]:
        """Of each stream the newest is first, and what came at one time is told the other way round
        too."""
        namespace, pod = self._names
        try:
            answer = typed.decode(body, _Answer)
            found = [
                Entry(int(at), one.stream.get(namespace, ""), one.stream.get(pod, ""), text)
                for one in answer.data.result
                for at, text in reversed(one.values)
            ]
        except (msgspec.MsgspecError, ValueError) as error:
            raise unread("its answer cannot be read") from error
        return sorted(found, key=lambda entry: entry.at)
