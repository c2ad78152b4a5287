"""The end of a pod's log, read at most once and never waited for long.

Bounded in bytes, lines, time and number. A node that has not answered is not asked again for a
while: with many jobs on a node that is lost, each would wait for it. Reads of logs leave room in
the client for everything else, and to wait for one's turn is not held against a node. Danger: the
kubelet counts `limitBytes` from the first of the last lines, so of very long lines the end would be
cut off; fewer lines are asked for then.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.pod_status import ContainerStatus
from mpi_trainer.controller.objects import Pod
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import ApiError, KubeError, ServerFault

log = logging.getLogger(__name__)

SECONDS: Final = 3.0
"""that the end of a job may wait for its last words"""
SILENT: Final = 30.0
"""seconds for which a node is left alone that has not answered"""
AT_ONCE: Final = 16
"""logs that are read at a time, by each of the two loops, of the 64 calls that go out at once"""
TURN: Final = 9.0
"""seconds that a read may wait for its turn"""
LINES: Final = (400, 40, 4, 1)
_GONE: Final = b"unable to retrieve container logs for "
"""the kubelet's word, in place of a log, for a container that it has removed"""


class UnreadableLog(Exception):
    """Why there is no log, in words for a person."""


class PodLogs:
    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._silent: dict[str, float] = {}
        self._room = asyncio.Semaphore(AT_ONCE)

    async def end(self, pod: Pod, main: str = "") -> str:
        """Of the container `main`, "" the first."""
        container = main or (pod.spec.containers[0].name if pod.spec.containers else "")
        if not _begun(pod, container):
            raise UnreadableLog("it had not started")
        self._check(pod.spec.node_name)
        try:
            async with asyncio.timeout(TURN):
                await self._room.acquire()
        except TimeoutError:
            raise UnreadableLog("too many others were to be read at the same time") from None
        try:
            self._check(pod.spec.node_name)
            return await self._asked(pod, container)
        finally:
            self._room.release()

    def _check(self, node: str) -> None:
        now = self._clock()
        self._silent = {name: until for name, until in self._silent.items() if until > now}
        if node in self._silent:
            raise UnreadableLog(f"node {node} does not answer")

    async def _asked(self, pod: Pod, container: str) -> str:
        node, now = pod.spec.node_name, self._clock()
        try:
            async with asyncio.timeout(SECONDS):
                return await self._read(pod, container)
        except (TimeoutError, KubeError) as error:
            log.info("no log of %s: %s", pod.metadata.name, error or "no answer")
            if isinstance(error, ApiError) and not isinstance(error, ServerFault):
                raise UnreadableLog("its log was gone before it could be read") from None
            self._silent[node] = now + SILENT
            raise UnreadableLog(f"node {node} did not give its log") from None

    async def _read(self, pod: Pod, container: str) -> str:
        target = pod.metadata.namespace, pod.metadata.name
        text = b""
        for lines in LINES:
            options = requests.LogOptions(
                container=container, tail=lines, limit_bytes=bounds.LOG_TAIL
            )
            request = replace(requests.logs(*target, options), tries=1, timeout=SECONDS)
            text = await self._client.fetch(request)
            if len(text) < bounds.LOG_TAIL:
                break
        if len(text) < len(_GONE) + 200 and text.startswith(_GONE):
            raise UnreadableLog("its log was gone before it could be read")
        return text.decode(errors="replace")


def _begun(pod: Pod, container: str) -> bool:
    found: tuple[ContainerStatus, ...] = pod.status.container_statuses
    return any(
        one.name == container and (one.state.running or one.state.terminated) for one in found
    )
