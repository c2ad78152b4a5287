"""Events about objects: written once, and counted after that.

`record` never blocks and never fails: it notes the event, and a task of its own writes it. The same
event within ten minutes raises its count, written at most every ten seconds; when one reason has
too many different messages, the rest share one event. Under pressure events are dropped and
counted: an event must not cost the job anything.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import AlreadyExists, ApiError, KubeError, NotFound, TooManyRequests
from mpi_trainer.kube.requests import Caller
from mpi_trainer.kube.resources import EVENTS
from mpi_trainer.runtime.logs import redacted
from mpi_trainer.runtime.metrics import Metrics

log = logging.getLogger(__name__)

SAME_SECONDS = 600.0
QUIET_SECONDS = 10.0
VARIANTS = 10
KNOWN = 2048
TRIES = 3
PAUSE = 1.0
COMBINED = "(combined from similar events): "


class EventSubject(msgspec.Struct, frozen=True, rename="camel"):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class _Id(NamedTuple):
    about: EventSubject
    type: str
    reason: str
    message: str


class _Entry:
    """One Event object, as recorded and as written."""

    def __init__(self, name: str, message: str, now: float) -> None:
        self.name = name
        self.message = message
        self.first = self.last = datetime.now(UTC)
        self.last_at = now
        self.count = 0
        self.written = 0
        self.not_before = now
        self.tries = 0


class Recorder:
    """`run` writes what `record` noted, until cancelled; `flush` writes the rest at the end."""

    def __init__(self, client: Caller, component: str, instance: str, metrics: Metrics) -> None:
        self._client = client
        self._component = component
        self._instance = instance
        self._metrics = metrics
        self._entries: OrderedDict[_Id, _Entry] = OrderedDict()
        self._variants: dict[tuple[EventSubject, str, str], int] = {}
        self._due: dict[_Id, None] = {}
        self._recorded = asyncio.Event()

    def record(
        self, about: EventSubject, type: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        message = short(redacted(message[: 4 * bounds.MESSAGE]))
        now = asyncio.get_running_loop().time()
        which, entry = self._entry(_Id(about, type, reason, message), now)
        entry.count += 1
        entry.last = datetime.now(UTC)
        entry.last_at = now
        entry.message = message if which.message == message else short(COMBINED + message)
        self._due[which] = None
        self._recorded.set()

    async def run(self) -> None:
        while True:
            self._recorded.clear()
            wait = await self._write_due()
            try:
                async with asyncio.timeout(wait):
                    await self._recorded.wait()
            except TimeoutError:
                continue

    async def flush(self, seconds: float) -> None:
        """Write what is due, without further delays, for at most so long."""
        try:
            async with asyncio.timeout(seconds):
                for which in tuple(self._due):
                    if which in self._entries:
                        await self._write(which, self._entries[which])
        except TimeoutError:
            log.warning("%d events were not written before the end", len(self._due))

    # --- what belongs together ---------------------------------------------------------------

    def _entry(self, which: _Id, now: float) -> tuple[_Id, _Entry]:
        self._drop_old(now)
        found = self._entries.get(which)
        if found is None:
            family = (which.about, which.type, which.reason)
            if self._variants.get(family, 0) >= VARIANTS:
                which = which._replace(message=COMBINED)
                found = self._entries.get(which)
            if found is None:
                self._variants[family] = self._variants.get(family, 0) + 1
                found = _Entry(_name(which.about), which.message, now)
        self._entries[which] = found
        self._entries.move_to_end(which)
        return which, found

    def _drop_old(self, now: float) -> None:
        while self._entries:
            which, entry = next(iter(self._entries.items()))
            full = len(self._entries) >= KNOWN
            if now - entry.last_at < SAME_SECONDS and not full:
                return
            self._drop(which)

    def _drop(self, which: _Id) -> None:
        if self._entries.pop(which, None) is None:
            return
        if which in self._due:
            del self._due[which]
            self._metrics.events_dropped.inc()
        family = (which.about, which.type, which.reason)
        self._variants[family] -= 1
        if not self._variants[family]:
            del self._variants[family]

    # --- writing -----------------------------------------------------------------------------

    async def _write_due(self) -> float | None:
        """Writes what may be written; returns when to come back, None for the next `record`."""
        clock = asyncio.get_running_loop().time
        for which in tuple(self._due):
            entry = self._entries.get(which)  # None if dropped while another was being written
            if entry is not None and entry.not_before <= clock():
                await self._write(which, entry)
        waits = [self._entries[which].not_before - clock() for which in self._due]
        return max(0.0, min(waits)) if waits else None

    async def _write(self, which: _Id, entry: _Entry) -> None:
        count = entry.count
        try:
            await self._send(which, entry)
        except Exception as error:  # an event must not fail anything else
            entry.tries += 1
            if not _worth_another_try(error) or entry.tries >= TRIES:
                log.warning("event %s of %s is dropped: %s", which.reason, which.about.name, error)
                self._drop(which)
            entry.not_before = asyncio.get_running_loop().time() + PAUSE * 2**entry.tries
            return
        entry.tries = 0
        entry.written = count
        entry.not_before = asyncio.get_running_loop().time() + QUIET_SECONDS
        if entry.count == count:
            self._due.pop(which, None)

    async def _send(self, which: _Id, entry: _Entry) -> None:
        namespace = which.about.namespace or "default"
        if entry.written:
            change = {
                "count": entry.count,
                "lastTimestamp": _stamp(entry.last),
                "message": entry.message,
            }
            try:
                await self._call(requests.patch(EVENTS, namespace, entry.name, change, "merge"))
                return
            except NotFound:
                entry.name = _name(which.about)  # the server forgets events after an hour
        try:
            body = self._body(which, entry)
            await self._call(requests.create(EVENTS, namespace, body))
        except AlreadyExists:
            return  # an earlier try arrived after all

    async def _call(self, request: requests.Request) -> None:
        # Tried once: a busy server should not be asked again for an event by this very call.
        await self._client.call(msgspec.structs.replace(request, tries=1, timeout=10.0), None)

    def _body(self, which: _Id, entry: _Entry) -> dict[str, Any]:
        about = which.about
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": entry.name, "namespace": about.namespace or "default"},
            "involvedObject": msgspec.to_builtins(about),
            "type": which.type,
            "reason": which.reason,
            "message": entry.message,
            "count": entry.count,
            "firstTimestamp": _stamp(entry.first),
            "lastTimestamp": _stamp(entry.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }


def short(message: str) -> str:
    """At most what the API server takes, cut between characters."""
    raw = message.encode()
    if len(raw) <= bounds.MESSAGE:
        return message
    return raw[: bounds.MESSAGE - 3].decode(errors="ignore") + "…"


def _worth_another_try(error: Exception) -> bool:
    if isinstance(error, ApiError):
        return isinstance(error, TooManyRequests) or error.code >= 500
    return isinstance(error, KubeError | TimeoutError)


def _name(about: EventSubject) -> str:
    return f"{about.name[:200].rstrip('-.')}.{time.time_ns():x}"


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
