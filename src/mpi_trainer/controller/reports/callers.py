"""Who tells of a TrainJob: a pod of its own, by the token that the kubelet gives it.

The token is shown to the API server (TokenReview) for the audience of this one job, and names its
pod; from the pod, owner references and uids lead over its Job and JobSet to the TrainJob. Labels
prove nothing, and a token of the namespace's account alone does not either. Guarantee: no answer
means no; a token is neither logged nor kept, only its digest, for a short time and in a bounded
number; no more than `AT_ONCE` are under review. Danger: a pod that has lost its job may tell of it
for `PROVEN_SECONDS`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mpi_trainer.controller.objects import Answer
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.resources import JOBS, JOBSETS, PODS, TOKEN_REVIEWS, TRAINJOBS, Resource
from mpi_trainer.render.reporting import audience
from mpi_trainer.runtime.partial import Key, Meta, OwnerRef

PROVEN_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 10.0
KEPT: Final = 4096
AT_ONCE: Final = 8
WAITING: Final = 64
_SECONDS: Final = 5.0
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_CHAIN: Final = ((JOBS, JOBSETS), (JOBSETS, TRAINJOBS))


class Busy(Exception):
    """Too many are waiting."""


class User(msgspec.Struct, frozen=True):
    username: str = ""
    extra: dict[str, tuple[str, ...]] = {}

    def only(self, name: str) -> str:
        """The value of an extra that has one; empty where it has not."""
        found = self.extra.get(name, ())
        return found[0] if len(found) == 1 else ""


class Review(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    audiences: tuple[str, ...] = ()


class TokenReview(msgspec.Struct, frozen=True):
    status: Review = Review()


class Callers:
    """Answers for one API server."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        # Apart, so that a flood of wrong tokens does not push the right ones out.
        self._proven: dict[bytes, tuple[float, str]] = {}
        self._refused: dict[bytes, tuple[float, str]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def job(self, authorization: str, key: Key) -> str:
        """The uid of the TrainJob that whoever sends this header is a pod of; empty: of none.

        Busy where too many ask; KubeError where the API server cannot be asked.
        """
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            return ""
        digest = hashlib.sha256(f"{key}\n{token}".encode()).digest()
        for kept in (self._proven, self._refused):
            until, uid = kept.get(digest, (0.0, ""))
            if self._clock() < until:
                return uid
        if self._waiting >= WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._room:
                uid = await self._asked(token, key)
        finally:
            self._waiting -= 1
        self._keep(digest, uid)
        return uid

    async def _asked(self, token: str, key: Key) -> str:
        wanted = audience(*key)
        spec = {"token": token, "audiences": [wanted]}
        found = (await self._client.call(_review(spec), TokenReview)).status
        if not found.authenticated or wanted not in found.audiences:
            return ""
        if not found.user.username.startswith(f"system:serviceaccount:{key.namespace}:"):
            return ""
        name, uid = found.user.only(_POD_NAME), found.user.only(_POD_UID)
        owner = await self._owner(PODS, key.namespace, name, uid)
        for resource, above in _CHAIN:
            if owner is None or not owner.of(resource):
                return ""
            owner = await self._owner(resource, key.namespace, owner.name, owner.uid)
            if owner is not None and not owner.of(above):
                return ""
        return owner.uid if owner is not None and owner.name == key.name else ""

    async def _owner(
        self, resource: Resource, namespace: str, name: str, uid: str
    ) -> OwnerRef | None:
        """Who controls this very object."""
        if not name or not uid:
            return None
        try:
            get = requests.brief(requests.get(resource, namespace, name))
            found: Meta = (await self._client.call(get, Answer)).metadata
        except NotFound:
            return None
        return found.controller() if found.uid == uid else None

    def _keep(self, digest: bytes, uid: str) -> None:
        kept = self._proven if uid else self._refused
        kept.pop(digest, None)
        if len(kept) >= KEPT:
            del kept[next(iter(kept))]  # the oldest
        kept[digest] = (self._clock() + (PROVEN_SECONDS if uid else REFUSED_SECONDS), uid)


def _review(spec: dict[str, Any]) -> requests.Request:
    made = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": spec}
    asked = requests.create(TOKEN_REVIEWS, "", made)
    return msgspec.structs.replace(asked, timeout=_SECONDS, tries=1, safe=True)
