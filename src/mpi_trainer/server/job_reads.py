"""Lists of jobs as callers have read them: shared between one caller's calls, and by no one else.

Who asks while the same list is being read shares the next read with all who ask meanwhile, so an
answer never lacks what was there when it was asked for. A read is kept for `KEPT_SECONDS`;
continue tokens name it, and further pages are cut from it.
Guarantee: whatever a name says, a caller gets their own reads alone, and in further pages none
that was begun before a change that they made here; what is dropped is held by nothing here. Danger:
a right that is taken away is noticed in further pages `KEPT_SECONDS` late, or when the same list
is refused.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.server.everywhere import Found
from mpi_trainer.server.told_lists import ToldLists

KEPT_SECONDS: Final = 30.0
MOST_KEPT: Final = 50_000
"""jobs, of all callers: about 100 MiB"""
LEAST: Final = 50
"""for which a shorter list counts: an empty one has its labels still"""
LONG: Final = 1000
"""jobs; what is counted of more of them holds up everybody for milliseconds"""
Scope = tuple[str, str, str, str]
"""the caller, the kind of jobs or any, the namespace or all, and the labels"""
Work = Callable[[], Awaitable[Found]]
T = TypeVar("T")


class Read(msgspec.Struct, frozen=True):
    jobs: Sequence[JobSummary]
    notes: tuple[str, ...]
    name: str


class JobReads:
    """Of all callers, in one event loop."""

    def __init__(self) -> None:
        self.told = ToldLists()
        self._turns: dict[Scope, _Turn] = {}
        """the newest, which may be joined"""
        self._unended: dict[_Turn, Scope] = {}
        self._kept: dict[Scope, _Kept] = {}
        self._cutting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def fresh(self, scope: Scope, work: Work) -> Read:
        """As it is now: the work begins after this call."""
        turn = self._turns.get(scope)
        if turn is None or turn.begun:
            turn = self._turns[scope] = _Turn(turn, work)
            self._unended[turn] = scope
            turn.task.add_done_callback(lambda _: self._ended(scope, turn))
        return await turn.result()

    def named(self, scope: Scope, name: str) -> Read | None:
        found = self._kept.get(scope)
        return found.read if found and found.read.name == name else None

    async def cut(self, caller: str, read: Read, work: Callable[[], T]) -> T:
        """What `work` makes of the read. Of a long one beside the event loop, and for one caller
        one after the other, so that nobody's many calls keep all others waiting."""
        if len(read.jobs) < LONG:
            return work()
        async with self._cutting.setdefault(caller, asyncio.Lock()):
            done = asyncio.ensure_future(asyncio.to_thread(work))
            try:
                return await asyncio.shield(done)
            finally:
                await asyncio.wait({done})  # a thread cannot be broken off

    def forget(self, caller: str) -> None:
        """The caller has changed something."""
        self.told.changed(caller)
        for scope in [one for one in self._kept if one[0] == caller]:
            self._drop(scope)
        for turn, scope in self._unended.items():
            if scope[0] == caller:
                turn.spoilt = turn.begun  # it may be from before the change

    def _ended(self, scope: Scope, turn: _Turn) -> None:
        del self._unended[turn]
        if self._turns.get(scope) is turn:
            del self._turns[scope]
        if turn.task.cancelled():
            return
        if turn.task.exception():
            self._drop(scope)  # a caller who is refused the list has no further pages of it
        elif not turn.spoilt:
            self._keep(scope, turn.task.result())

    def _keep(self, scope: Scope, read: Read) -> None:
        self._drop(scope)
        if len(read.jobs) > MOST_KEPT:
            return
        timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._drop, scope)
        self._kept[scope] = _Kept(read, timer)
        while (held := self._held()).total() > MOST_KEPT:
            ((caller, _),) = held.most_common(1)
            self._drop(next(one for one in self._kept if one[0] == caller))  # their oldest

    def _held(self) -> Counter[str]:
        """By caller, for whoever keeps most makes room."""
        found: Counter[str] = Counter()
        for scope, one in self._kept.items():
            found[scope[0]] += max(len(one.read.jobs), LEAST)
        return found

    def _drop(self, scope: Scope) -> None:
        kept = self._kept.pop(scope, None)
        if kept is not None:
            kept.timer.cancel()


class _Kept(msgspec.Struct, frozen=True):
    read: Read
    timer: asyncio.TimerHandle


class _Turn:
    """One read, which begins when the one before has ended, and ends when nobody waits for it."""

    def __init__(self, before: _Turn | None, work: Work) -> None:
        self.begun = self.spoilt = False
        self._before = before
        self._waiting = 0
        self.task = asyncio.get_running_loop().create_task(self._run(work))

    async def _run(self, work: Work) -> Read:
        if self._before is not None:
            await asyncio.wait({self._before.task})
            self._before = None
        self.begun = True
        jobs, notes = await work()
        return Read(jobs, notes, secrets.token_urlsafe(8))

    async def result(self) -> Read:
        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if not self._waiting and not self.task.done():
                self.begun = True  # nobody joins it any more
                self.task.cancel()


class CallerReads(msgspec.Struct, frozen=True):
    """Those of one caller, for jobs of one kind or of any."""

    shared: JobReads
    caller: str
    kind: str

    async def read(self, namespace: str, labels: str, work: Work, name: str = "") -> Read:
        """The one of that name where it is kept; else a fresh one, of an open stream of the caller
        where it holds the same jobs."""
        scope = (self.caller, self.kind, namespace, labels)

        async def either() -> Found:
            told = None
            if not labels:
                told = await self.shared.told.jobs(self.caller, self.kind, namespace)
            return await work() if told is None else (told, ())

        return self.shared.named(scope, name) or await self.shared.fresh(scope, either)

    async def cut(self, read: Read, work: Callable[[], T]) -> T:
        return await self.shared.cut(self.caller, read, work)
