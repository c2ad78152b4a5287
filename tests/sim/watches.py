"""The scripted server's watches: events in order, bookmarks, and what the script spoils."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from aiohttp import web

from tests.sim.faults import Fault
from tests.sim.objects import Change, Object, Objects, matches


class Selection(msgspec.Struct, frozen=True):
    """Which objects a watch is about."""

    collection: str
    namespace: str
    labels: str
    fields: str

    def event(self, change: Change) -> tuple[str, Object] | None:
        """What this selection sees of a change: objects come into it and leave it."""
        if change.key[0] != self.collection or self.namespace not in ("", change.key[1]):
            return None
        now = change.type != "DELETED" and matches(change.object, self.labels, self.fields)
        before = change.before is not None and matches(change.before, self.labels, self.fields)
        if now:
            return ("MODIFIED" if before else "ADDED"), change.object
        return ("DELETED", change.object) if before else None


class Watch:
    """One open watch."""

    def __init__(self, objects: Objects, selection: Selection, fault: Fault | None) -> None:
        self._objects = objects
        self._selection = selection
        self._fault = fault
        self._queue: asyncio.Queue[tuple[str, Object]] = asyncio.Queue()
        self._transport: asyncio.BaseTransport | None = None
        self._sent = 0
        self._held: bytes = b""

    def abort(self) -> None:
        """Break the connection."""
        if isinstance(self._transport, asyncio.Transport):
            self._transport.abort()
        self._queue.put_nowait(("CLOSED", {}))

    async def serve(
        self, request: web.Request, query: dict[str, str], bookmarks: float, stop: asyncio.Event
    ) -> web.StreamResponse:
        """Write events until the time is over, the client leaves or the script says so."""
        self._transport = request.transport
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        since = query.get("resourceVersion", "")
        if since not in ("", "0") and int(since) < self._objects.oldest:
            await response.write(_line("ERROR", _failure(410, "Expired")))
            return response
        self._objects.listeners.append(self._hear)
        try:
            self._begin(since)
            until = time.monotonic() + float(query.get("timeoutSeconds") or 3600)
            marks = query.get("allowWatchBookmarks") == "true"
            while (left := until - time.monotonic()) > 0 and not stop.is_set():
                try:
                    async with asyncio.timeout(min(left, bookmarks)):
                        kind, obj = await self._queue.get()
                except TimeoutError:
                    kind, obj = "BOOKMARK", _mark(self._objects.version)
                    if not marks:
                        continue
                if kind == "CLOSED" or not await self._write(response, kind, obj, stop):
                    break
        except ConnectionError:
            pass
        finally:
            self._objects.listeners.remove(self._hear)
        return response

    def _begin(self, since: str) -> None:
        chosen = self._selection
        if since in ("", "0"):
            found = self._objects.select(
                chosen.collection, chosen.namespace, chosen.labels, chosen.fields
            )
            for _, obj in found:
                self._queue.put_nowait(("ADDED", obj))
        else:
            for change in self._objects.history:
                if change.version > int(since):
                    self._hear(change)

    def _hear(self, change: Change) -> None:
        if event := self._selection.event(change):
            self._queue.put_nowait(event)

    async def _write(
        self, response: web.StreamResponse, kind: str, obj: Object, stop: asyncio.Event
    ) -> bool:
        """Write one event, spoiled if it is time for that; whether to go on."""
        fault, line = self._fault, _line(kind, obj)
        if fault is None or self._sent < fault.after:
            self._sent += 1
            await response.write(line)
            return True
        match fault.kind:
            case "silence":
                await stop.wait()
            case "cut":
                await response.write(line[: len(line) // 2])
                self.abort()
            case "gone":
                await response.write(_line("ERROR", _failure(410, "Expired")))
            case "error":
                await response.write(_line("ERROR", _failure(fault.code, fault.reason)))
            case "duplicate":
                await response.write(line + line)
            case "reorder" if kind != "BOOKMARK" and not self._held:
                self._held = line
            case "reorder":
                await response.write(line + self._held)
                self._held = b""
        return fault.kind in ("duplicate", "reorder")


def _line(kind: str, obj: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def _mark(version: int) -> Object:
    return {"kind": "Bookmark", "metadata": {"resourceVersion": str(version)}}


def _failure(code: int, reason: str) -> dict[str, Any]:
    words = "too old resource version" if code == 410 else "as the script says"
    return {"kind": "Status", "code": code, "reason": reason, "message": words}
