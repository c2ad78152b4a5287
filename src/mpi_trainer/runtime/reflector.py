"""Keeps a store like the server's objects: list, then watch, for ever.

Guarantees: whatever the server or the network does, the store comes to agree with the server again
by itself, and `on_change` is called for every difference, also for a deletion that no watch ever
showed. It never ends by itself and never tries in a hot loop. A slow, full list now and then makes
up for events that a server lost; it also replays what did not change.
The list is a consistent read, in pages: a cache that starts over never goes back in time. Pages are
as large as objects are small, and are worked on in slices between which the event loop goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, Generic, NoReturn

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Gone, KubeError, ServerFault, Unreachable
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import Resource
from mpi_trainer.kube.watch import Bookmark, Deleted, Unreadable, WatchEvent, WatchMeta, watch
from mpi_trainer.runtime.backoff import WATCHES, Backoff, Chance
from mpi_trainer.runtime.partial import HasNames, Key, T, key_of, version_number
from mpi_trainer.runtime.store import Change, Store

log = logging.getLogger(__name__)

RELIST_SECONDS = 12 * 3600.0
FIRST_PAGE = 25
PAGE: Final = 100
"""objects of the largest size that etcd takes, so many at once, are what the memory limit allows"""
PAGE_BYTES: Final = 4 << 20
"""that a page may have, about: it is in memory twice, and decoded without a pause"""
SLICE: Final = 50
"""objects that are taken in before the event loop has its turn"""
TOO_SHORT = 1.0
OnChange = Callable[[Any, Any], None]
OnUnreadable = Callable[[Resource, WatchMeta, str], None]


class _Doubt(Exception):
    """The watch is out of order in a way that only a list can resolve."""


class Reflector(Generic[T]):
    """`on_change(old, new)` is called after the store has changed, and must not block, nor must
    `on_unreadable(resource, metadata, why)`. `keep` makes of an object what the store is to hold.
    `gather`: how many seconds late changes may come where there are many."""

    def __init__(  # noqa: PLR0913 - what to watch, where to put it, whom to tell
        self,
        client: Client,
        resource: Resource,
        kind: type[T],
        store: Store[T],
        *,
        labels: str = "",
        fields: str = "",
        namespace: str = "",
        on_change: OnChange | None = None,
        on_unreadable: OnUnreadable | None = None,
        keep: Callable[[T], T] = lambda value: value,
        gather: float = 0.0,
        chance: Chance = random.random,
    ) -> None:
        self.name = f"{namespace}/{resource.plural}" if namespace else resource.plural
        self._client = client
        self._resource = resource
        self._kind = kind
        self._decoder = typed.decoder(kind)
        self._store = store
        self._labels = labels
        self._fields = fields
        self._namespace = namespace
        self._on_change = on_change
        self._on_unreadable = on_unreadable
        self._keep = keep
        self._gather = gather
        self._chance = chance
        self._version = ""  # from where to watch on; "" when a list is due
        self._relist_at = 0.0
        self._scope: asyncio.Timeout | None = None
        self._refreshing: list[asyncio.Future[None]] = []
        self._synced = asyncio.Event()
        self.listing = False
        self.lists = self.watches = self.unreadable = 0
        self.heard_at = float("-inf")
        self.active_at = float("inf")  # not started: nothing to worry about

    @property
    def synced(self) -> bool:
        """Whether the store has been filled once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def refresh(self) -> None:
        """Returns once a list that began after this call is in the store."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refreshing.append(done)
        self._interrupt()
        await done

    async def run(self) -> NoReturn:
        clock = asyncio.get_running_loop().time
        backoff = Backoff(WATCHES, clock, chance=self._chance)
        while True:
            self.active_at = began = clock()
            heard, lists, retry_after = self.heard_at, self.lists, 0.0
            watched = bool(self._version)
            try:
                await self._go_on(backoff)
                if clock() - began >= TOO_SHORT or self.heard_at > heard or self._refreshing:
                    continue
                log.warning("%s: the server ends watches at once", self.name)
            except (Gone, _Doubt) as why:
                self._version = ""
                log.info("%s: listing again: %s", self.name, why)
                if watched and self.lists == lists:
                    continue  # not the answer to a list, nor to what one has just begun
            except KubeError as error:
                if isinstance(error, ServerFault):
                    # Among others "too large resource version", after a restore of etcd.
                    self._version = ""
                retry_after = min(getattr(error, "retry_after", None) or 0.0, WATCHES.cap)
                log.warning("%s: %s", self.name, error)
            await self._pause(max(backoff.failed(), retry_after))

    async def _go_on(self, backoff: Backoff) -> None:
        while not self._version or self._refreshing or self._time_to_relist():
            # Again, if somebody asked for a fresh one while it was on its way.
            await self._list()
            backoff.healthy()
        with contextlib.suppress(TimeoutError):
            async with self._until(self._relist_at):
                await self._watch(backoff)

    # --- list --------------------------------------------------------------------------------

    def _time_to_relist(self) -> bool:
        return asyncio.get_running_loop().time() >= self._relist_at

    async def _list(self) -> None:
        waiting, self._refreshing = self._refreshing, []
        planned = self.synced and bool(self._version) and not waiting
        try:
            try:
                values, unread, version = await self._read(FIRST_PAGE)
            except Gone:
                # The pages came too slowly for the server's memory; a whole list needs none.
                values, unread, version = await self._read(0)
        except BaseException:
            self._refreshing = waiting + self._refreshing
            raise
        self.lists += 1
        loop = asyncio.get_running_loop()
        self._relist_at = loop.time() + RELIST_SECONDS * (0.9 + 0.2 * self._chance())
        self.heard_at = loop.time()
        self._version = version
        changes = self._store.replace(values, version, self._namespace, unread)
        self.listing = True
        try:
            await self._tell_in_slices(changes)
            if planned:
                changed = {id(change.new) for change in changes}
                same = (value for value in self._store if id(value) not in changed)
                await self._tell_in_slices(Change(value, value) for value in same)
        finally:
            self.listing = False
        self._synced.set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _read(self, limit: int) -> tuple[list[T], list[Key], str]:
        """All objects, the keys of those that cannot be decoded, and the list's version."""
        values: list[T] = []
        unread: list[Key] = []
        async with contextlib.aclosing(self._pages(limit)) as pages:
            async for request, page in pages:
                for number, item in enumerate(page.items or (), 1):
                    if number % SLICE == 0:
                        await asyncio.sleep(0)
                    try:
                        values.append(self._taken_in(page.read(item, self._decoder)))
                    except msgspec.ValidationError as error:
                        whose = lists.head(self._client, request, item)
                        unread.append(Key(whose.namespace, whose.name))
                        self._say_unreadable(whose, str(error))
                self.active_at = asyncio.get_running_loop().time()
        return values, unread, page.metadata.resource_version

    async def _pages(self, limit: int) -> AsyncGenerator[tuple[Request, lists.UndecodedPage], None]:
        """One page after the other, with its request; the next is on its way meanwhile."""
        request, page = await self._page(limit, "")
        while page.metadata.continue_:
            limit = limit and _page_size(page.items or ())
            following = asyncio.create_task(self._page(limit, page.metadata.continue_))
            try:
                yield request, page
                request, page = await following
            finally:
                following.cancel()
        yield request, page

    async def _page(self, limit: int, token: str) -> tuple[Request, lists.UndecodedPage]:
        request = requests.list_page(
            self._resource, self._namespace, self._labels, self._fields, limit, token
        )
        # Mostly we wait ourselves: health is judged by how long one try may take.
        few = msgspec.structs.replace(request, tries=2)
        return few, await lists.undecoded_page(self._client, few, await self._client.fetch(few))

    def _taken_in(self, value: T) -> T:
        """What is known already is not kept twice, not even for the time of a list."""
        known = self._store.get(key_of(value))
        if known is not None and _same(known.metadata, value.metadata):
            return known
        return self._keep(value)

    # --- watch -------------------------------------------------------------------------------

    async def _watch(self, backoff: Backoff) -> None:
        request = requests.watch(
            self._resource,
            self._namespace,
            self._labels,
            self._fields,
            resource_version=self._version,
            seconds=300 + int(300 * self._chance()),
            gather=self._gather,
        )
        self.watches += 1
        try:
            async with contextlib.aclosing(watch(self._client, request, self._kind)) as events:
                async for event in events:
                    self.heard_at = self.active_at = asyncio.get_running_loop().time()
                    backoff.healthy()
                    self._take(event)
        except Unreachable as error:
            # Silence is no failure: not every server sends bookmarks. Opened anew, it would fail.
            if error.what != "time-out":
                raise
            log.info("%s: silent, watching anew: %s", self.name, error)

    def _take(self, event: WatchEvent[T]) -> None:
        if isinstance(event, Bookmark):
            self._store.advance(event.resource_version, self._namespace)
            self._advance(event.resource_version)
        elif isinstance(event, Unreadable):
            self._take_unreadable(event)
        elif isinstance(event, Deleted):
            changes = self._store.remove(event.object, self._namespace)
            self._advance(event.object.metadata.resource_version)
            self._tell(changes)
        else:
            outcome, changes = self._store.put(self._keep(event.object), self._namespace)
            if outcome == "doubtful":
                raise _Doubt(f"{event.object.metadata.name} came after what follows it")
            self._advance(event.object.metadata.resource_version)
            self._tell(changes)

    def _take_unreadable(self, event: Unreadable) -> None:
        key = Key(event.metadata.namespace, event.metadata.name)
        self._advance(event.metadata.resource_version)
        if event.type == "DELETED":
            self._tell(self._store.discard(key, event.metadata, self._namespace))
        else:
            self._store.advance(event.metadata.resource_version, self._namespace)
            self._say_unreadable(event.metadata, event.why)

    def _advance(self, version: str) -> None:
        if version_number(version) > version_number(self._version):
            self._version = version

    # --- callbacks, waiting --------------------------------------------------------------------

    async def _tell_in_slices(self, changes: Iterable[Change]) -> None:
        for number, change in enumerate(changes, 1):
            self._tell((change,))
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def _tell(self, changes: tuple[Change, ...]) -> None:
        if self._on_change is None:
            return
        for change in changes:
            try:
                self._on_change(change.old, change.new)
            except Exception:
                # One object's trouble must not keep the others from being seen.
                log.exception("%s: a change could not be passed on", self.name)

    def _say_unreadable(self, whose: WatchMeta, why: str) -> None:
        self.unreadable += 1
        key = Key(whose.namespace, whose.name)
        log.error("%s: %s cannot be read and is left as it was: %s", self.name, key, why)
        if self._on_unreadable is not None:
            self._on_unreadable(self._resource, whose, why)

    @contextlib.asynccontextmanager
    async def _until(self, when: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout_at(when) as self._scope:
                yield
        finally:
            self._scope = None

    async def _pause(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError):
            async with self._until(loop.time() + seconds):
                await loop.create_future()

    def _interrupt(self) -> None:
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())


def _page_size(items: Sequence[msgspec.Raw]) -> int:
    """How many objects the next page should have, by the size of these."""
    size = sum(memoryview(item).nbytes for item in items)
    return min(max(PAGE_BYTES * len(items) // max(size, 1), 1), PAGE)


def _same(one: HasNames, other: HasNames) -> bool:
    return one.uid == other.uid and one.resource_version == other.resource_version
