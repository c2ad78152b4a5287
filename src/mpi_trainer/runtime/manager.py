"""Runs a controller's parts in the right order, and stops them in the right order.

Start: probes, leadership if nobody leads, caches, workers. While another leads the caches are
filled all the same, and after it made current: it may have written what no watch has shown to us.
Stop: no new keys, workers finish, events are written, caches, and only then the lease, so that the
next leader never meets our last write. All of that within `stop` seconds; a second signal does not
wait. When the lease is lost everything is cancelled at once and the exit code is 1.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from typing import Any

import msgspec

from mpi_trainer.runtime.leases import Elector, LeaseLost
from mpi_trainer.runtime.loop_lag import LoopLag
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.probes import Probes
from mpi_trainer.runtime.recorder import Recorder
from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.workers import Workers

log = logging.getLogger(__name__)

STUCK_REFLECTOR = 300.0
STUCK_WORK = 600.0
LATE_LOOP = 5.0
LAST_EVENTS = 3.0
RESERVE = LAST_EVENTS + 2.0  # of the time to stop, for events and the lease


class Times(msgspec.Struct, frozen=True):
    """Seconds for caches to fill before we give up, and for stopping as a whole."""

    sync: float = 120.0
    stop: float = 30.0


class Parts(msgspec.Struct, frozen=True):
    """What a manager runs. Without an elector it leads alone; without workers it only watches."""

    metrics: Metrics
    probes: Probes
    reflectors: Sequence[Reflector[Any]] = ()
    workers: Sequence[Workers[Any]] = ()
    recorder: Recorder | None = None
    elector: Elector | None = None
    times: Times = Times()


class NotSynced(Exception):
    """The caches did not fill in time."""


class Manager:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._stop = asyncio.Event()
        self._now = asyncio.Event()
        self._clean = True  # no write of ours may still be on its way
        self._lag = LoopLag(parts.metrics)
        for reflector in parts.reflectors:
            parts.metrics.watch_reflector(reflector)
        parts.probes.healthy |= {
            "event loop": self._late,
            "caches": self._stuck_caches,
            "workers": self._stuck_workers,
        }
        parts.probes.ready["caches"] = self._unsynced

    def stop(self) -> None:
        """Begin a graceful stop; the second time, an immediate one."""
        if self._stop.is_set():
            self._now.set()
        self._stop.set()

    async def run(self) -> int:
        """Until stopped or failed; the process's exit code."""
        code = 0
        try:
            with self._signals():
                await self._run()
        except* (LeaseLost, NotSynced) as ends:
            code = 1
            log.error("ending: %s", _first(ends))
        except* Exception as failures:
            code = 1
            log.critical("ending after a fault of the program", exc_info=failures)
        return code

    # --- in order ----------------------------------------------------------------------------

    async def _run(self) -> None:
        parts = self._parts
        async with parts.probes:
            leads = parts.elector is not None and await parts.elector.try_once()
            async with _background([r.run() for r in parts.reflectors] + [self._lag.run()]):
                if parts.elector is None:
                    if not await self._stopped_during(self._synced()):
                        await self._work()
                elif leads:
                    await self._lead_from_the_start(parts.elector)
                else:
                    await self._follow(parts.elector)
            if parts.elector is not None and self._clean:
                await parts.elector.release()

    async def _lead_from_the_start(self, elector: Elector) -> None:
        """Whatever is listed now was listed after the last leader's end."""
        try:
            async with _background([elector.keep()]):
                if not await self._stopped_during(self._synced()):
                    await self._work()
        except* NotSynced:
            await elector.release()  # another may see more
            raise

    async def _follow(self, elector: Elector) -> None:
        if await self._stopped_during(self._synced()):
            return
        if await self._stopped_during(elector.acquire()):
            return
        async with _background([elector.keep()]):
            if not await self._stopped_during(self._current()):
                await self._work()

    async def _work(self) -> None:
        parts = self._parts
        gc.collect()
        gc.freeze()
        recorder = [] if parts.recorder is None else [parts.recorder.run()]
        async with _background(recorder), _background([w.run() for w in parts.workers]) as workers:
            log.info("working", extra={"controllers": [w.name for w in parts.workers]})
            await self._stop.wait()
            await self._drain(workers)
        if parts.recorder is not None and not self._now.is_set():
            await parts.recorder.flush(LAST_EVENTS)

    async def _synced(self) -> None:
        try:
            async with asyncio.timeout(self._parts.times.sync):
                await asyncio.gather(*(r.wait_synced() for r in self._parts.reflectors))
        except TimeoutError:
            names = ", ".join(r.name for r in self._parts.reflectors if not r.synced)
            raise NotSynced(
                f"no list of {names} in {self._parts.times.sync:g} s; see the warnings above"
            ) from None

    async def _current(self) -> None:
        """The last leader may have written what a watch has not shown to us yet."""
        await asyncio.gather(*(r.refresh() for r in self._parts.reflectors))

    async def _drain(self, workers: Sequence[asyncio.Task[None]]) -> None:
        log.info("stopping: waiting for what is in work")
        for each in self._parts.workers:
            each.queue.close()
        if not workers:
            return
        finished = asyncio.gather(*workers, return_exceptions=True)
        hurry = asyncio.ensure_future(self._now.wait())
        try:
            await asyncio.wait(
                (finished, hurry),
                timeout=max(0.0, self._parts.times.stop - RESERVE),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            hurry.cancel()
            self._clean = finished.done()
        if not self._clean:
            log.warning("stopping though keys are in work; the lease is left to run out")

    async def _stopped_during(self, work: Coroutine[Any, Any, None]) -> bool:
        """Runs `work` unless a stop comes first; its failures are ours."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            stop = group.create_task(self._stop.wait())
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            stopped = not task.done()
            task.cancel()
            stop.cancel()
        return stopped

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    # --- what probes ask ---------------------------------------------------------------------

    def _late(self) -> str:
        lag = self._lag.sustained
        return f"late by {lag:.1f} s" if lag > LATE_LOOP else ""

    def _stuck_caches(self) -> str:
        now = asyncio.get_running_loop().time()
        stuck = [r.name for r in self._parts.reflectors if now - r.active_at > STUCK_REFLECTOR]
        return f"{', '.join(stuck)}: no sign of life in {STUCK_REFLECTOR:g} s" if stuck else ""

    def _stuck_workers(self) -> str:
        stuck = [
            w.name for w in self._parts.workers if max(w.queue.ages(), default=0.0) > STUCK_WORK
        ]
        return f"{', '.join(stuck)}: in one key for {STUCK_WORK:g} s" if stuck else ""

    def _unsynced(self) -> str:
        missing = [r.name for r in self._parts.reflectors if not r.synced]
        return f"not filled yet: {', '.join(missing)}" if missing else ""


@contextlib.asynccontextmanager
async def _background(
    work: Sequence[Coroutine[Any, Any, Any]],
) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Tasks that run beside the block and are cancelled at its end; a failure ends the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()


def _first(group: BaseExceptionGroup[Exception]) -> BaseException:
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner
