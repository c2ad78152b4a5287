"""The log of one pod's main container, from its beginning until it ends, whatever breaks meanwhile.

Reading waits for a container that has not started, goes on after a broken connection or an API
server that was away, and after a restart of the container in its pod, whose earlier output is
fetched as far as the node still has it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import ApiError, KubeError, NotFound, ServerFault
from mpi_trainer.kube.requests import LogOptions
from mpi_trainer.kube.resources import PODS
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.log_position import LogEntry, LogPosition
from mpi_trainer.sdk.backends.cluster.observed import Pod

replace = msgspec.structs.replace
_PAUSE: Final = 1.0
_BREATH: Final = 0.2
_NOT_YET: Final = 400


class PodLog:
    """A reader with a memory of how far it came. Lines of more than `longest` bytes come in
    parts."""

    def __init__(
        self, server: ApiServer, pod: Pod, since: str = "", longest: int = bounds.HELD
    ) -> None:
        self._server = server
        self._pod = pod
        self._since = since
        self._longest = longest
        self._place = LogPosition()
        self._restarts = 0
        self.over = False

    async def read(self) -> AsyncGenerator[LogEntry, None]:
        """What is there now and was not given yet."""
        async with aclosing(self._caught_up()) as earlier:
            async for entry in earlier:
                yield entry
        if self._started:
            async with aclosing(self._part(follow=False)) as lines:
                async for entry in lines:
                    yield entry

    async def follow(self) -> AsyncGenerator[LogEntry, None]:
        """What comes, until the container has ended for good; `over` says whether it has.

        Returns early where the pod has not started yet: only the caller knows how long to wait.
        """
        tried = 0
        while not self.over and await self._look() and self._started:
            try:
                async with aclosing(self._caught_up()) as earlier:
                    async for entry in earlier:
                        yield entry
                # Whatever was written before the end is there once the end is seen.
                ended = self._ended
                async with aclosing(self._part(follow=not ended)) as lines:
                    async for entry in lines:
                        tried = 0
                        yield entry
                self.over = ended
                await asyncio.sleep(0 if ended else _BREATH)
            except NotFound:
                continue
            except ApiError as error:
                # 400: it is about to start. 5xx: its node is away, and may come back.
                if error.code != _NOT_YET and not isinstance(error, ServerFault):
                    raise
                await asyncio.sleep(_PAUSE)
            except KubeError as error:
                await self._server.outages.wait_for_server(error, tried)
                tried += 1

    @property
    def _started(self) -> bool:
        state = self._pod.main.state
        return state.running is not None or state.terminated is not None or self._restarts > 0

    @property
    def _ended(self) -> bool:
        return self._pod.over or (
            self._pod.main.state.terminated is not None
            and self._pod.metadata.deletion_timestamp is not None
        )

    async def _look(self) -> bool:
        """Whether the pod is still there."""
        meta = self._pod.metadata
        try:
            found = await self._server.call(requests.get(PODS, meta.namespace, meta.name), Pod)
        except NotFound:
            self.over = True
            return False
        self.over = found.metadata.uid != meta.uid
        self._pod = self._pod if self.over else found
        return not self.over

    async def _caught_up(self) -> AsyncGenerator[LogEntry, None]:
        """The rest of containers that were restarted since; only the last one's is kept."""
        count = self._pod.main.restart_count
        if count == self._restarts:
            return
        missed = count - self._restarts > 1
        if missed:
            self._place = LogPosition()
        try:
            async with aclosing(self._part(follow=False, previous=True)) as lines:
                async for entry in lines:
                    yield replace(entry, gap=entry.gap or missed)
                    missed = False
        except ApiError:
            missed = True  # the node has thrown it away
        self._restarts, self._place = count, LogPosition()
        if missed:
            self._place.lose()

    async def _part(
        self, *, follow: bool, previous: bool = False
    ) -> AsyncGenerator[LogEntry, None]:
        options = LogOptions(
            container=self._pod.container,
            follow=follow,
            previous=previous,
            timestamps=True,
            since=self._place.since or self._since,
        )
        self._place.resume()
        meta = self._pod.metadata
        request = requests.logs(meta.namespace, meta.name, options)
        async with aclosing(self._server.streams.lines(request, self._longest)) as lines:
            async for line in lines:
                self._server.outages.note_answer()
                entry = self._place.take(line)
                if entry is not None:
                    yield entry
