"""One watch for everybody who waits for a job, in place of asking again and again.

Few jobs are watched by name, so that a waiter in a busy namespace hears of its own job only; from
`MANY` on, one watch of the namespace serves all. Level-triggered: a listener gets the newest state,
and states in between may be passed over. Guarantee: a watch that breaks goes on where it was, or
lists again; it ends with its last listener. Refusals (401, 403, no such kind) reach all listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import Gone, KubeError
from mpi_trainer.kube.resources import Resource
from mpi_trainer.kube.watch import Added, Bookmark, Deleted, Modified, Unreadable, watch
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.backends.cluster.outages import Outages

if TYPE_CHECKING:
    from mpi_trainer.kube.client import Client

Object = Mapping[str, Any]
_Stored = dict[str, Any]
Change = lists.Page[_Stored] | Added[_Stored] | Modified[_Stored] | Deleted[_Stored]
MANY: Final = 4
SECONDS: Final = 600


class Watches:
    """The watches of one connection."""

    def __init__(self, client: Client, outages: Outages) -> None:
        self._client = client
        self._outages = outages
        self._running: dict[tuple[Resource, str, str], _Watch] = {}

    async def follow(self, resource: Resource, key: Key) -> AsyncGenerator[Object | None, None]:
        """The object now and after changes; None where there is none. Ends never by itself."""
        place = self._place(resource, key)
        found = self._running.get(place)
        if found is None:
            found = self._running[place] = _Watch(self._client, self._outages, place)
        heard = asyncio.Event()
        found.listeners.setdefault(key.name, set()).add(heard)
        try:
            await found.synced.wait()
            while True:
                heard.clear()
                if found.error is not None:
                    raise found.error
                yield found.objects.get(key.name)
                await heard.wait()
        finally:
            found.listeners[key.name].discard(heard)
            if not found.listeners[key.name]:
                del found.listeners[key.name]
            if not found.listeners and self._running.get(place) is found:
                del self._running[place]
                await found.end()

    def _place(self, resource: Resource, key: Key) -> tuple[Resource, str, str]:
        whole, own = (resource, key.namespace, ""), (resource, key.namespace, key.name)
        if self._usable(own):
            return own
        narrow = [p for p in self._running if p[:2] == whole[:2] and p[2]]
        return whole if self._usable(whole) or len(narrow) >= MANY else own

    def _usable(self, place: tuple[Resource, str, str]) -> bool:
        found = self._running.get(place)
        if found is not None and found.error is not None:
            del self._running[place]
            return False
        return found is not None


class _Watch:
    """Runs as a task from the beginning."""

    def __init__(self, client: Client, outages: Outages, place: tuple[Resource, str, str]) -> None:
        resource, namespace, name = place
        fields = f"metadata.name={name}" if name else ""
        self.objects: dict[str, Object] = {}
        self.listeners: dict[str, set[asyncio.Event]] = {}
        self.synced = asyncio.Event()
        self.error: KubeError | None = None
        changes = list_and_watch(client, outages, resource, namespace, fields)
        self._task = asyncio.get_running_loop().create_task(self._run(changes))

    async def end(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self, changes: AsyncGenerator[Change, None]) -> None:
        try:
            async with aclosing(changes):
                async for change in changes:
                    self._tell(*self._stored(change))
        except KubeError as error:
            self.error = error
        self.synced.set()
        self._tell(*self.listeners)

    def _stored(self, change: Change) -> Iterable[str]:
        """The names that it is about."""
        if isinstance(change, lists.Page):
            before, self.objects = self.objects, {o["metadata"]["name"]: o for o in change.items}
            self.synced.set()
            return {*before, *self.objects, *self.listeners}
        name = change.object["metadata"]["name"]
        if isinstance(change, Deleted):
            self.objects.pop(name, None)
        else:
            self.objects[name] = change.object
        return (name,)

    def _tell(self, *names: str) -> None:
        for name in names:
            for heard in self.listeners.get(name, ()):
                heard.set()


async def list_and_watch(
    client: Client,
    outages: Outages,
    resource: Resource,
    namespace: str,
    fields: str = "",
    labels: str = "",
) -> AsyncGenerator[Change, None]:
    """All objects as one page, then every change; a page again where the watch has broken."""
    version, tried = "", 0
    while True:
        try:
            if not version:
                # Only the answer to a list proves that the server is back.
                page = await lists.list_all(
                    client,
                    resource,
                    dict[str, Any],
                    namespace=namespace,
                    fields=fields,
                    labels=labels,
                )
                outages.note_answer()
                version, tried = page.resource_version, 0
                yield page
            request = requests.watch(
                resource, namespace, labels, fields, resource_version=version, seconds=SECONDS
            )
            async with aclosing(watch(client, request, dict[str, Any])) as events:
                async for event in events:
                    if isinstance(event, Bookmark):
                        version = event.resource_version
                    elif isinstance(event, Unreadable):
                        version = event.metadata.resource_version
                    else:
                        version = event.object["metadata"]["resourceVersion"]
                        yield event
        except Gone:
            version = ""
        except KubeError as error:
            version = ""
            await outages.wait_for_server(error, tried)
            tried += 1
