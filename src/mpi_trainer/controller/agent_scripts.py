"""The ConfigMap with the agent's scripts, in every namespace that needs it and no longer.

Jobs share it, so it is nobody's child: it is made before a job's first pod, its content is checked
once and then known by its uid, and it goes some minutes after the last unfinished job that uses its
version. Somebody may delete it, or make another of its name: the next start puts that right, and so
does a check now and then while any job waits for its pods. After a restart the marks on launcher
Jobs and JobSets tell which versions there may be. Danger: an older version's text is not known
here, so that one is left alone while anybody uses it, and can never be made again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from mpi_trainer.controller.children import Predecessor
from mpi_trainer.controller.objects import Answer
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import AlreadyExists, Conflict, NotFound
from mpi_trainer.kube.resources import CONFIGMAPS
from mpi_trainer.render import agent_scripts
from mpi_trainer.runtime.partial import Key, Meta, Partial
from mpi_trainer.runtime.workers import DONE, Result
from mpi_trainer.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

UNKNOWN = "?"
"""the version of a job that uses one, and nobody knows which"""


class Times(msgspec.Struct, frozen=True):
    """In seconds: for how long a check counts, and what nobody uses any more is kept."""

    check: float = 30.0
    keep: float = 600.0


class ScriptsUser(NamedTuple):
    """A job, as far as it uses scripts."""

    kind: str
    key: Key


class _StoredScripts(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    immutable: bool = False
    data: Mapping[str, str] = {}
    binary_data: Mapping[str, str] = {}


class _Namespace(msgspec.Struct):
    """One namespace. `uid` is that of the checked one; `there` are versions that may exist, `gone`
    those that were removed, `users` the versions of each unfinished job (two, where it has grown
    since an upgrade), `waiting` those of them user pods have not all started."""

    lock: asyncio.Lock
    uid: str = ""
    checked: float = 0.0
    unused: float = 0.0
    there: set[str] = msgspec.field(default_factory=set)
    gone: set[str] = msgspec.field(default_factory=set)
    users: dict[ScriptsUser, set[str]] = msgspec.field(default_factory=dict)
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    waiting: set[ScriptsUser] = msgspec.field(default_factory=set)

    def unneeded(self) -> list[str]:
        if self.counts[UNKNOWN]:
            return []
        return [name for name in self.there if not self.counts[name]]

    def add(self, user: ScriptsUser, name: str) -> None:
        names = self.users.setdefault(user, set())
        if name in names:
            return
        names.add(name)
        self.counts[name] += 1
        if name != UNKNOWN:
            self.there.add(name)
            self.gone.discard(name)

    def drop(self, user: ScriptsUser) -> bool:
        """Whether it was one of them."""
        names = self.users.pop(user, set())
        self.counts.subtract(names)
        return bool(names)

    def idle(self) -> bool:
        """Whether nothing of it need be remembered."""
        return not (self.users or self.there or self.lock.locked())


_TIMES = Times()


class AgentScripts:
    """`reconcile` looks at one namespace: `Key(namespace, "")`."""

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[Key],
        clock: Callable[[], float] = time.monotonic,
        times: Times = _TIMES,
    ) -> None:
        self._client = client
        self.queue = queue
        self._clock = clock
        self._times = times
        self._namespaces: dict[str, _Namespace] = {}

    def __len__(self) -> int:
        """Namespaces of which anything is remembered."""
        return len(self._namespaces)

    # --- what the loops of jobs say ------------------------------------------------------------

    async def provide(self, user: ScriptsUser) -> None:
        """Before any pod of the job: this version's scripts are there, and are what they should be.

        `Predecessor` where another ConfigMap of the name is still on its way out.
        """
        state = self._state(user.key.namespace)
        state.add(user, agent_scripts.name())
        async with state.lock:
            await self._check(user.key.namespace, state)

    def note_use(self, user: ScriptsUser, marks: Mapping[str, str], waits: bool) -> None:
        """An unfinished job has pods; `marks` are the annotations of the object that makes them,
        and `waits` that some have not started."""
        state = self._state(user.key.namespace)
        name = agent_scripts.used(marks)
        if name or user not in state.users:
            state.add(user, name or UNKNOWN)
        if not waits:
            state.waiting.discard(user)
            return
        # Whatever else it began with: a pod that waits may be one that this version made.
        state.add(user, agent_scripts.name())
        if user not in state.waiting:
            state.waiting.add(user)
            self.queue.add_after(Key(user.key.namespace, ""), self._times.check)

    def note_end(self, user: ScriptsUser, marks: Mapping[str, str] | None = None) -> None:
        """The job has no pods and will make none for now: it has ended, rests or is gone."""
        name = agent_scripts.used(marks or {})
        state = self._namespaces.get(user.key.namespace)
        if state is None:
            if not name:
                return
            state = self._state(user.key.namespace)
        state.waiting.discard(user)
        used = state.drop(user)
        fresh = bool(name) and name not in state.there | state.gone
        if fresh:
            state.there.add(name)
        if (used or fresh) and state.unneeded():
            state.unused = self._clock()
            self.queue.add_after(Key(user.key.namespace, ""), self._times.keep, urgent=False)
        self._forget_idle(user.key.namespace, state)

    # --- a namespace ---------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> Result:
        state = self._namespaces.get(key.namespace)
        if state is None:
            return DONE
        waits: list[float] = []
        async with state.lock:
            if state.waiting:
                waits.append(self._times.check)
                with contextlib.suppress(Predecessor):
                    await self._check(key.namespace, state)
            if state.unneeded():
                left = state.unused + self._times.keep - self._clock()
                if left <= 0:
                    await self._remove(key.namespace, state)
                else:
                    waits.append(left)
        self._forget_idle(key.namespace, state)
        return Result(min(waits, default=None))

    async def _check(self, namespace: str, state: _Namespace) -> None:
        now = self._clock()
        if state.uid and now - state.checked < self._times.check:
            return
        if not state.uid or not await self._is_known(namespace, state.uid):
            state.uid = ""
            state.uid = await self._existing(namespace) or await self._create(namespace)
        state.checked = now

    async def _is_known(self, namespace: str, uid: str) -> bool:
        get = requests.brief(requests.get(CONFIGMAPS, namespace, agent_scripts.name()))
        try:
            found = (await self._client.call(get, Answer)).metadata
        except NotFound:
            return False
        return found.uid == uid and found.deletion_timestamp is None

    async def _existing(self, namespace: str) -> str:
        """The uid of the one that is there and right; a wrong one is removed."""
        try:
            found = await self._client.call(
                requests.get(CONFIGMAPS, namespace, agent_scripts.name()), _StoredScripts
            )
        except NotFound:
            return ""
        uid = found.metadata.uid
        if found.metadata.deletion_timestamp is not None:
            raise Predecessor(f"ConfigMap {agent_scripts.name()} is still being deleted")
        if found.immutable and found.data == agent_scripts.data() and not found.binary_data:
            return uid
        log.warning(
            "ConfigMap %s/%s is not what it should be: replaced", namespace, agent_scripts.name()
        )
        await self._delete(namespace, agent_scripts.name(), uid)
        return ""

    async def _create(self, namespace: str) -> str:
        create = requests.create(CONFIGMAPS, namespace, agent_scripts.config_map(namespace))
        once = msgspec.structs.replace(requests.brief(create), tries=1)
        self._state(namespace).there.add(agent_scripts.name())
        try:
            return (await self._client.call(once, Answer)).metadata.uid
        except AlreadyExists:
            raise Predecessor(f"another ConfigMap {agent_scripts.name()} was there first") from None

    async def _remove(self, namespace: str, state: _Namespace) -> None:
        while unneeded := state.unneeded():
            name = unneeded[0]
            state.there.discard(name)
            state.gone.add(name)
            uid = ""
            if name == agent_scripts.name():
                uid, state.uid = state.uid, ""
            try:
                await self._delete(namespace, name, uid)
            except BaseException:
                state.there.add(name)
                raise

    async def _delete(self, namespace: str, name: str, uid: str = "") -> None:
        try:
            await self._client.call(requests.delete(CONFIGMAPS, namespace, name, uid), None)
        except (NotFound, Conflict):
            return

    # --- inside --------------------------------------------------------------------------------

    def _state(self, namespace: str) -> _Namespace:
        state = self._namespaces.get(namespace)
        if state is None:
            state = self._namespaces[namespace] = _Namespace(asyncio.Lock())
        return state

    def _forget_idle(self, namespace: str, state: _Namespace) -> None:
        if state.idle():
            self._namespaces.pop(namespace, None)
