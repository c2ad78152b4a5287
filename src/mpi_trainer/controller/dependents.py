"""ConfigMap, Secret and what else must exist before a job's first pod.

The agent's scripts are the namespace's (`agent_scripts`), the others the job's own. They are
created once per attempt and never watched; a second creation finds the first. The ConfigMap changes
within an attempt only where the job's size does; a new attempt replaces it if the job has changed.
Danger: the key pair exists only here, on its way into the Secret; it is neither kept nor logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.mpijob import KIND
from mpi_trainer.controller.agent_scripts import AgentScripts, ScriptsUser
from mpi_trainer.controller.children import NameTaken, Predecessor, check_owner, get_or_create
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.objects import Answer
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, KubeError, NotFound
from mpi_trainer.kube.resources import CONFIGMAPS, SECRETS, Resource
from mpi_trainer.render.secrets import Part
from mpi_trainer.runtime import key_pairs
from mpi_trainer.runtime.key_pairs import ECDSA, KeyType
from mpi_trainer.runtime.partial import Key, Meta, Partial

Object = dict[str, Any]
Parts = Mapping[Part, str]

log = logging.getLogger(__name__)

RECENT: Final = timedelta(minutes=10)
"""Keys are looked for of jobs that ended at most so long before this controller began."""
SKEW: Final = timedelta(seconds=30)
"""by which the clock of the controller before may have been ahead of ours"""


class WantedDependents(msgspec.Struct, frozen=True):
    """What a job needs. `secret` renders its Secret from the `parts` of its keys; None: no keys.
    `scripts`: its pods read the agent's, and are to start now."""

    config_map: Object
    others: tuple[tuple[Resource, Object], ...] = ()
    parts: frozenset[Part] = frozenset()
    secret: Callable[[Parts], Object] | None = None
    scripts: bool = False


class _Data(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    data: Mapping[str, str] = {}


class _KeyNames(Partial, frozen=True, gc=False):
    data: Mapping[str, msgspec.Raw] = {}


class MadeDependents(msgspec.Struct):
    """What exists of one job: for which attempt, and the Secret with this uid and name."""

    attempt: int | None = None
    secret: str = ""
    secret_name: str = ""


class Dependents:
    """Remembers which jobs' dependents exist, so that not every pass asks; for jobs of `kind`."""

    def __init__(
        self,
        client: Client,
        memories: JobMemories,
        scripts: AgentScripts,
        kind: str = KIND,
        key_type: KeyType = ECDSA,
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._memories = memories
        self._kind = kind
        self._key_type: KeyType = key_type
        self._began: datetime | None = None
        # The uids of jobs whose key must be deleted. They outlive `memories`, which a job that has
        # ended is dropped from.
        self._marked: dict[Key, str] = {}

    def exist(self, uid: str) -> bool:
        return self._made(uid).attempt is not None

    def _made(self, uid: str) -> MadeDependents:
        return self._memories.part(uid, MadeDependents)

    async def provide(self, owner: Meta, wanted: WantedDependents, attempt: int) -> None:
        """All of it; raises NameTaken before any pod exists."""
        if wanted.scripts:
            await self.provide_scripts(owner)
        if self._made(owner.uid).attempt == attempt:
            return
        made = await asyncio.gather(
            *(get_or_create(self._client, *self._mine(r, owner, one)) for r, one in wanted.others),
            self._config_map(owner, wanted.config_map),
            self._secret(owner, wanted),
            return_exceptions=True,
        )
        wrong = [m for m in made if isinstance(m, BaseException)]
        for error in sorted(wrong, key=lambda e: not isinstance(e, NameTaken)):
            raise error
        self._made(owner.uid).attempt = attempt

    async def provide_scripts(self, owner: Meta) -> None:
        """The agent's scripts, before any pod of this job starts."""
        await self._scripts.provide(ScriptsUser(self._kind, Key(owner.namespace, owner.name)))

    async def replace_config_map(self, owner: Meta, wanted: WantedDependents) -> None:
        """The job's hosts have changed while its launcher runs, and so do the files."""
        known = self._made(owner.uid)
        attempt, known.attempt = known.attempt, None  # none exists while it is replaced
        await self._config_map(owner, wanted.config_map)
        known.attempt = attempt

    def mark_key_for_deletion(self, owner: Meta) -> None:
        """The end of the job is about to be written. Whatever comes of that, an answer that is lost
        or a pass that is broken off, its key must be deleted."""
        self._marked[Key(owner.namespace, owner.name)] = owner.uid

    def forget(self, key: Key) -> None:
        """There is no job of this name, and so no key of one."""
        self._marked.pop(key, None)

    async def delete_key(self, owner: Meta, name: str) -> bool:
        """The end of the job is the end of its key (AC-19); whether it is gone. A Secret that is
        not the job's stays. A refusal is only logged: nothing else waits for this."""
        known = self._made(owner.uid)
        self.mark_key_for_deletion(owner)
        try:
            await self._delete_secret(owner, known.secret_name or name, known.secret)
        except KubeError as error:
            log.warning("the key of %s/%s is still there: %s", owner.namespace, owner.name, error)
            return False
        self.forget(Key(owner.namespace, owner.name))
        known.attempt, known.secret, known.secret_name = None, "", ""
        return True

    def may_have_key(self, owner: Meta, ended: datetime | None, now: datetime) -> bool:
        """Whether the key of a job that has ended may still exist: its deletion was not confirmed,
        or another controller wrote the end shortly before this one began, and came no further."""
        self._began = began = self._began or now
        if self._marked.get(Key(owner.namespace, owner.name)) == owner.uid:
            return True
        if ended is None or now - began > RECENT:
            return False
        return began - RECENT <= ended <= began + SKEW

    async def _delete_secret(self, owner: Meta, name: str, uid: str) -> None:
        namespace = owner.namespace
        try:
            if not uid:
                get = requests.brief(requests.get(SECRETS, namespace, name))
                secret = await self._client.call(get, Answer)
                uid = check_owner(SECRETS, owner, secret.metadata, self._kind).uid
            await self._client.call(requests.delete(SECRETS, namespace, name, uid=uid), None)
        except (NotFound, NameTaken, Predecessor, Conflict):
            return

    def _mine(
        self, resource: Resource, owner: Meta, desired: Object
    ) -> tuple[Resource, Meta, Object, str]:
        return resource, owner, desired, self._kind

    async def _secret(self, owner: Meta, wanted: WantedDependents) -> None:
        if self._made(owner.uid).secret or wanted.secret is None:
            return
        parts = await asyncio.to_thread(_key_parts, wanted.parts, self._key_type)
        secret = wanted.secret(parts)
        mine = self._mine(SECRETS, owner, secret)
        found, new = await get_or_create(self._client, *mine)
        if not new and not await self._has_keys(found, secret["data"]):
            # Another controller's: no pod of ours could start with it, and none of its own is left.
            gone = requests.delete(SECRETS, found.namespace, found.name, uid=found.uid)
            await self._client.call(gone, None)
            found, _ = await get_or_create(self._client, *mine)
        self._made(owner.uid).secret, self._made(owner.uid).secret_name = found.uid, found.name

    async def _has_keys(self, found: Meta, wanted: Iterable[str]) -> bool:
        """By their names; what they hold is not looked at."""
        stored = await self._client.call(
            requests.get(SECRETS, found.namespace, found.name), _KeyNames
        )
        return set(wanted) <= set(stored.data)

    async def _config_map(self, owner: Meta, desired: Object) -> None:
        mine = self._mine(CONFIGMAPS, owner, desired)
        _, fresh = await get_or_create(self._client, *mine)
        if fresh:
            return
        name = desired["metadata"]["name"]
        found = await self._client.call(requests.get(CONFIGMAPS, owner.namespace, name), _Data)
        if found.data == desired["data"]:
            return
        uid = found.metadata.uid
        await self._client.call(requests.delete(CONFIGMAPS, owner.namespace, name, uid), None)
        await get_or_create(self._client, *mine)


def _key_parts(wanted: frozenset[Part], kind: KeyType) -> dict[Part, str]:
    """One pair opens the workers; the other, where asked for, proves that they are the job's. Flux
    has one pair of its own kind."""
    if "curve-private" in wanted:
        curve = key_pairs.generate_curve()
        return {"curve-private": curve.private, "curve-public": curve.public}
    pair = key_pairs.generate_ssh(kind)
    parts: dict[Part, str] = {"private": pair.private.decode(), "public": pair.public}
    if wanted & {"host-private", "host-public"}:
        host = key_pairs.generate_ssh(kind)
        parts |= {"host-private": host.private.decode(), "host-public": host.public}
    return parts
