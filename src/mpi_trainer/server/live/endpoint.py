"""A live stream as a value: what it takes, and the events that it gives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, ClassVar

import msgspec

from mpi_trainer.server.endpoint import Call, NoQuery
from mpi_trainer.server.live.access import Reader
from mpi_trainer.server.live.hub import Hub
from mpi_trainer.server.live.values import Sent


class LiveCall(Call, frozen=True, kw_only=True):
    """`position` is the id of the last event that the caller has; empty where they begin."""

    hub: Hub
    reader: Reader
    position: str = ""


class EventStream(msgspec.Struct, frozen=True):
    """`events` are the names of its events, and what each carries."""

    method: ClassVar[str] = "GET"

    path: str
    name: str
    summary: str
    run: Callable[[LiveCall], AsyncGenerator[Sent, None]]
    events: Mapping[str, Any]
    query: type[msgspec.Struct] = NoQuery
    kind: str = ""
