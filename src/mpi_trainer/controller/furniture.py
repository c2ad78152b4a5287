"""Service, ConfigMap and Secret: what must stand before a job's first pod.

They are made once per attempt and never watched. A second making finds the first. The ConfigMap
is frozen within an attempt; a new attempt replaces it if the job has changed since. Danger: the
key pair exists only here, on its way into the Secret; it is neither kept nor logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.controller.claims import NameTaken, Predecessor, check, claim
from mpi_trainer.controller.desired import Desired
from mpi_trainer.controller.objects import Answer
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, NotFound
from mpi_trainer.kube.resources import CONFIGMAPS, SECRETS, SERVICES
from mpi_trainer.render import mpijob as render
from mpi_trainer.render import names
from mpi_trainer.render.secrets import Part
from mpi_trainer.runtime import sshkeys
from mpi_trainer.runtime.partial import Meta, Partial


class _Data(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class Furniture:
    """Remembers which jobs' furniture stands, so that a look need not ask."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._standing: dict[str, int] = {}
        self._secrets: dict[str, str] = {}

    def stands(self, uid: str) -> bool:
        return uid in self._standing

    def forget(self, uid: str) -> None:
        self._standing.pop(uid, None)
        self._secrets.pop(uid, None)

    async def provide(self, job: MPIJob, owner: Meta, wanted: Desired, attempt: int) -> None:
        """All three; raises NameTaken before any pod exists."""
        if self._standing.get(owner.uid) == attempt:
            return
        made = await asyncio.gather(
            claim(self._client, SERVICES, owner, wanted.children.service),
            self._config_map(owner, wanted),
            self._secret(job, owner, wanted),
            return_exceptions=True,
        )
        wrong = [m for m in made if isinstance(m, BaseException)]
        for error in sorted(wrong, key=lambda e: not isinstance(e, NameTaken)):
            raise error
        self._standing[owner.uid] = attempt

    async def take_key(self, job: MPIJob) -> None:
        """The end of the job is the end of its key (AC-19). Another's Secret stays."""
        uid, name = job.metadata.uid, names.secret(job.name)
        owner = Meta(name=job.name, namespace=job.namespace, uid=uid)
        found = self._secrets.get(uid)
        try:
            if found is None:
                secret = await self._client.call(requests.get(SECRETS, job.namespace, name), Answer)
                found = check(SECRETS, owner, secret.metadata).uid
            await self._client.call(requests.delete(SECRETS, job.namespace, name, uid=found), None)
        except (NotFound, NameTaken, Predecessor, Conflict):
            pass
        self.forget(uid)

    async def _secret(self, job: MPIJob, owner: Meta, wanted: Desired) -> None:
        if owner.uid in self._secrets:
            return
        parts = await asyncio.to_thread(_key_parts, wanted.parts)
        secret = render.secret(wanted.layout, job, parts)
        found, _ = await claim(self._client, SECRETS, owner, secret)
        self._secrets[owner.uid] = found.uid

    async def _config_map(self, owner: Meta, wanted: Desired) -> None:
        desired: dict[str, Any] = wanted.children.config_map
        _, fresh = await claim(self._client, CONFIGMAPS, owner, desired)
        if fresh:
            return
        name = desired["metadata"]["name"]
        found = await self._client.call(requests.get(CONFIGMAPS, owner.namespace, name), _Data)
        if found.data == desired["data"]:
            return
        uid = found.metadata.uid
        await self._client.call(requests.delete(CONFIGMAPS, owner.namespace, name, uid), None)
        await claim(self._client, CONFIGMAPS, owner, desired)


def _key_parts(wanted: frozenset[Part]) -> dict[Part, str]:
    """One pair opens the workers; the other, where asked for, proves that they are the job's."""
    pair = sshkeys.generate()
    parts: dict[Part, str] = {"private": pair.private.decode(), "public": pair.public}
    if wanted & {"host-private", "host-public"}:
        host = sshkeys.generate()
        parts |= {"host-private": host.private.decode(), "host-public": host.public}
    return parts
