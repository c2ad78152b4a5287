"""The last words of a launcher that failed, fetched once and made fit to be shown (OBS-4)."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api import conditions as c
from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.controller import redact
from mpi_trainer.controller.ending import launcher_end
from mpi_trainer.controller.jobmemory import JobMemories
from mpi_trainer.controller.look import Owned, attempt
from mpi_trainer.controller.objects import Pod
from mpi_trainer.decide import Record, testimony
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.layout.agent import lastwords

log = logging.getLogger(__name__)

_SECONDS = 5.0
_LINES = 200

# The agent's notes of what ranks do, for machines; they leave no room for the program's words.
_NOTE = "mpi-agent| "


class Tail(msgspec.Struct):
    """The last words of the pod with this uid."""

    pod: str = ""
    text: str = ""


class Tails:
    """`on` is the administrator's switch."""

    def __init__(self, client: Client, memories: JobMemories, on: bool = True) -> None:
        self._client = client
        self._memories = memories
        self._on = on

    async def of(self, job: MPIJob, memory: Record, mine: Owned) -> str | None:
        """Empty where the launcher of this attempt has not failed, or nothing can be had.

        None where tails are switched off.
        """
        if not self._on:
            return None
        pod = next((p for p in mine.launchers if attempt(p) == memory.attempt), None)
        if pod is None or pod.status.phase != "Failed" or memory.retry_at is not None:
            return ""
        if c.finished(job.status.conditions):
            return ""
        known = self._memories.of(job.metadata.uid, Tail)
        if known.pod != pod.metadata.uid:
            known.text = await self._fetch(job, pod)
            known.pod = pod.metadata.uid
        return known.text

    async def _fetch(self, job: MPIJob, pod: Pod) -> str:
        end, summary = launcher_end(pod, job.workers)
        said, charge = end.message, ""
        if not said:
            container = pod.spec.containers[0].name if pod.spec.containers else ""
            options = requests.LogOptions(
                container=container, tail=_LINES, limit_bytes=bounds.LOG_TAIL
            )
            request = requests.logs(pod.metadata.namespace, pod.metadata.name, options)
            try:
                async with asyncio.timeout(_SECONDS):
                    once = msgspec.structs.replace(request, tries=1, timeout=_SECONDS)
                    said = _words((await self._client.fetch(once)).decode(errors="replace"))
            except (KubeError, TimeoutError) as error:
                log.info("no log of %s: %s", pod.metadata.name, error)
                return ""
            charge = testimony.accused(summary, lastwords.first(said.splitlines())).text
        # Some milliseconds for a long log, and many for a hostile one.
        shown = await asyncio.to_thread(redact.tail, said, _environment(job))
        return "\n".join(filter(None, (charge, shown)))


def _words(log: str) -> str:
    return "\n".join(line for line in log.splitlines() if not line.startswith(_NOTE))


def _environment(job: MPIJob) -> list[tuple[str, str]]:
    """Every variable that the job's templates set outright."""
    return [
        (variable.name, variable.value)
        for replica in (job.launcher, job.worker)
        for container in replica.template.view.spec.containers
        for variable in container.env
        if variable.value
    ]
