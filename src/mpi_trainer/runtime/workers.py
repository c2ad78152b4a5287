"""Workers that reconcile keys, one key by one worker at a time.

What a pass raises decides when the key comes again: after a failure later each time, after a
refusal for overload when the server asks for it, after `Terminal` not until something changes.
A fault of the program in one key never ends a worker. Every pass has a time limit, and after each
the event loop has its turn: passes that wait for nothing must not hold up everything that does.
One namespace's passes take half of the workers at most.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import msgspec

from mpi_trainer.kube.errors import Conflict, KubeError, PastDeadline, TooManyRequests
from mpi_trainer.runtime import logs
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.workqueue import Closed, WorkQueue

log = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)

STALE_SECONDS = 0.5


class Result(msgspec.Struct, frozen=True):
    """All is done for now; the next pass is due `after` so many seconds, None for never."""

    after: float | None = None


DONE = Result()


class Terminal(Exception):
    """Trying again is of no use until something changes."""


class WorkerSettings(msgspec.Struct, frozen=True):
    workers: int = 8
    timeout: float = 60.0


_DEFAULTS = WorkerSettings()


class Workers(Generic[K]):
    """The workers of one queue. `fresh` tells whether a key may be decided upon yet."""

    def __init__(
        self,
        name: str,
        queue: WorkQueue[K],
        reconcile: Callable[[K], Awaitable[Result]],
        metrics: Metrics,
        *,
        fresh: Callable[[K], bool] = lambda _: True,
        settings: WorkerSettings = _DEFAULTS,
    ) -> None:
        self.name = name
        self.queue = queue
        queue.places = settings.workers
        self._reconcile = reconcile
        self._fresh = fresh
        self._settings = settings
        self._metrics = metrics
        metrics.watch_queue(name, queue)
        metrics.start_controller(name, settings.workers)

    async def run(self) -> None:
        """Until the queue is closed and what was begun is finished."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._settings.workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except Closed:
                return
            try:
                if self._fresh(key):
                    await self._pass(key)
                else:
                    # The awaited event itself adds the key; this is for one that is lost.
                    self.queue.add_after(key, STALE_SECONDS)
            finally:
                self.queue.done(key)
            await asyncio.sleep(0)

    async def _pass(self, key: K) -> None:
        active = self._metrics.workers_active.labels(self.name)
        started = asyncio.get_running_loop().time()
        active.inc()
        with logs.bound(controller=self.name, key=key, reconcile_id=uuid.uuid4().hex[:8]):
            try:
                outcome = await self._outcome(key)
            finally:
                active.dec()
        self._metrics.reconciles.labels(self.name, outcome).inc()
        seconds = asyncio.get_running_loop().time() - started
        self._metrics.reconcile_seconds.labels(self.name).observe(seconds)

    async def _outcome(self, key: K) -> str:
        try:
            async with asyncio.timeout(self._settings.timeout) as limit:
                result = await self._reconcile(key)
        except Terminal as error:
            self._metrics.reconcile_terminal_errors.labels(self.name).inc()
            self._metrics.reconcile_errors.labels(self.name).inc()
            self.queue.forget(key)
            log.error("gave up until something changes: %s", error)
            return "error"
        except (Conflict, TooManyRequests, PastDeadline) as error:
            wait = self.queue.retry(key, getattr(error, "retry_after", None) or 0.0)
            log.info("again in %.3g s: %s", wait, error)
            return "requeue"
        except Exception as error:
            self._count_failure(error, limit.expired())
            wait = self.queue.retry(key)
            expected = isinstance(error, KubeError | TimeoutError)
            log.error("failed, again in %.3g s: %s", wait, error, exc_info=not expected)
            return "error"
        self.queue.forget(key)
        if result.after is None:
            return "success"
        self.queue.add_after(key, result.after)
        return "requeue_after"

    def _count_failure(self, error: Exception, timed_out: bool) -> None:
        self._metrics.reconcile_errors.labels(self.name).inc()
        if timed_out:
            self._metrics.reconcile_timeouts.labels(self.name).inc()
        elif not isinstance(error, KubeError | TimeoutError):
            self._metrics.reconcile_panics.labels(self.name).inc()
