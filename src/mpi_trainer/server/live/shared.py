"""One watch for everybody who looks at the same jobs.

It reads with the login of one of its readers, and goes on with that of another, from where it was,
when that one leaves or may no longer read. What is made of a job, its JSON too, is made once.
Danger: whoever joins must have been asked about first (`access.py`); a watch does not know rights.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

import msgspec

from mpi_trainer.sdk.backends.backend import JobSummary
from mpi_trainer.sdk.backends.live import Away, JobsNow, LiveChange, LiveNews
from mpi_trainer.sdk.errors import K8sApiException
from mpi_trainer.server import views
from mpi_trainer.server.live.access import Reader
from mpi_trainer.server.live.values import DeletedJob

MOST_WAITING: Final = 500
"""changes that wait for one reader; with more of them they get all jobs anew"""
ABSENT_SECONDS: Final = 60.0
_LOST: Final = (401, 403)
_ABSENT: Final = 404

Scope = tuple[str, str, str]
"""whose jobs at all (a backend's name), the kind, and the namespace or nothing"""


class Entry(msgspec.Struct, frozen=True):
    """A job as readers get it. `body` is JSON."""

    job: JobSummary
    body: bytes
    deleted: bool = False


class Mailbox:
    """What waits for one reader: every change in its order, and never more than so many."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.wake = asyncio.Event()
        self.error: Exception | None = None
        self.anew = False
        self._waiting: list[Entry] = []

    def put(self, entry: Entry) -> None:
        self._waiting.append(entry)
        if len(self._waiting) > MOST_WAITING:
            self.start_anew()
        self.wake.set()

    def start_anew(self) -> None:
        self._waiting.clear()
        self.anew = True
        self.wake.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.wake.set()

    def take(self) -> tuple[Entry, ...]:
        found = tuple(self._waiting)
        self._waiting.clear()
        self.anew = False
        self.wake.clear()
        return found


class SharedWatch:
    """The jobs of one scope, for its readers. Runs from its first reader to its last."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.synced = asyncio.Event()
        self.current = False
        """whether it is told of changes as they happen"""
        self.version = ""
        self.jobs: dict[str, Entry] = {}
        self.readers: dict[Mailbox, None] = {}
        self._opener: Mailbox | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def kind(self) -> str:
        return self.scope[1]

    @property
    def namespace(self) -> str:
        return self.scope[2]

    def join(self, box: Mailbox) -> None:
        self.readers[box] = None
        if self._task is None or self._task.done():
            self._start()

    def leave(self, box: Mailbox) -> None:
        """The next reader's login takes over where it was this one's."""
        self.readers.pop(box, None)
        if not self.readers or box is self._opener:
            if self._task is not None:
                self._task.cancel()
            if self.readers:
                self._start()

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self.readers:
            opener = self._opener = next(iter(self.readers))
            try:
                await self._follow(opener.reader)
            except K8sApiException as error:
                if error.status == _ABSENT:
                    await self._absent()
                elif error.status in _LOST:
                    self._fail(opener, error)
                else:
                    self._fail_all(error)
            except Exception as error:
                self._fail_all(error)

    async def _follow(self, reader: Reader) -> None:
        self.current = False  # until this login has news
        _, kind, namespace = self.scope
        news = reader.backend.live.jobs(kind, namespace, self.version)
        async with aclosing(news) as found:
            async for one in found:
                self._take(one)

    def _take(self, news: LiveNews) -> None:
        self.current = not isinstance(news, Away)
        if isinstance(news, Away):
            return
        if isinstance(news, JobsNow):
            self.version = news.version
            self.jobs = {job.uid: self._entry(job) for job in news.jobs}
            again = self.synced.is_set()
            self.synced.set()
            for box in self.readers:
                if again:
                    box.start_anew()
        elif isinstance(news, LiveChange):
            self.version = news.job.resource_version
            self._change(news)
        else:
            self.version = news.version

    def _change(self, news: LiveChange) -> None:
        uid = news.job.uid
        if news.deleted:
            if self.jobs.pop(uid, None) is None:
                return
            entry = _deleted(news.job)
        else:
            entry = self._entry(news.job)
            before, self.jobs[uid] = self.jobs.get(uid), entry
            if entry is before:
                return
        for box in self.readers:
            box.put(entry)

    def _entry(self, job: JobSummary) -> Entry:
        before = self.jobs.get(job.uid)
        if before is not None and before.job == job:
            return before
        return Entry(job, msgspec.json.encode(views.item(job)))

    async def _absent(self) -> None:
        """The cluster has no such kind: nothing to see, until it is asked for again."""
        self.current = True
        gone, self.jobs, self.version = self.jobs, {}, ""
        self.synced.set()
        if gone:
            for box in self.readers:
                box.start_anew()
        await asyncio.sleep(ABSENT_SECONDS)

    def _fail(self, box: Mailbox, error: Exception) -> None:
        self.readers.pop(box, None)
        box.fail(error)

    def _fail_all(self, error: Exception) -> None:
        for box in tuple(self.readers):
            self._fail(box, error)


def _deleted(job: JobSummary) -> Entry:
    gone = DeletedJob(job.kind, job.key.namespace, job.key.name, job.uid)
    return Entry(job, msgspec.json.encode(gone), deleted=True)


class SharedWatches:
    """All of them, each for as long as somebody looks."""

    def __init__(self) -> None:
        self._running: dict[Scope, SharedWatch] = {}

    def join(self, scope: Scope, box: Mailbox) -> SharedWatch:
        """Only for whom `access.py` has let in just now."""
        found = self._running.get(scope)
        if found is None:
            found = self._running[scope] = SharedWatch(scope)
        found.join(box)
        return found

    def leave(self, watches: Iterable[SharedWatch], box: Mailbox) -> None:
        for one in watches:
            one.leave(box)
            if not one.readers and self._running.get(one.scope) is one:
                del self._running[one.scope]

    def __len__(self) -> int:
        return len(self._running)
