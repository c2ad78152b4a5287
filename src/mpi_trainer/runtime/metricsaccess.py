"""Who may read the metrics: whoever the API server knows and lets GET /metrics.

A bearer token is shown to the API server (TokenReview), and its owner's right is asked for
(SubjectAccessReview on the path). Guarantee: no answer means no; a token is neither logged nor
kept, only its digest, for a short time and in a bounded number; no more than `AT_ONCE` tokens are
under review, whoever knocks. Danger: a right that was taken away holds on for `ALLOWED_SECONDS`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from typing import Any, Final

import msgspec

from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource

PATH: Final = "/metrics"
OK: Final = 200
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
CANNOT_ASK: Final = 503
ALLOWED_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 10.0
KEPT: Final = 256
AT_ONCE: Final = 4
_WAITING: Final = 16
_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class TokenReview(msgspec.Struct, frozen=True):
    status: TokenStatus = TokenStatus()


class AccessReview(msgspec.Struct, frozen=True):
    status: AccessStatus = AccessStatus()


class Access:
    """Answers for one API server."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Apart, so that a flood of wrong tokens does not push the right ones out.
        self._allowed: dict[bytes, tuple[float, int]] = {}
        self._refused: dict[bytes, tuple[float, int]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def judge(self, authorization: str) -> int:
        """The HTTP status for whoever sends this header: 200, 401, 403 or 503."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            return UNKNOWN
        digest = hashlib.sha256(token.encode()).digest()
        for kept in (self._allowed, self._refused):
            until, status = kept.get(digest, (0.0, 0))
            if time.monotonic() < until:
                return status
        if self._waiting >= _WAITING:
            return CANNOT_ASK
        self._waiting += 1
        try:
            async with self._room:
                status = await self._review(token)
        except KubeError as error:
            log.warning("cannot tell who may read the metrics: %s", error)
            return CANNOT_ASK
        finally:
            self._waiting -= 1
        self._keep(digest, status)
        return status

    async def _review(self, token: str) -> int:
        asked = _request(TOKEN_REVIEWS, {"token": token})
        found = (await self._client.call(asked, TokenReview)).status
        if not found.authenticated:
            return UNKNOWN
        user = found.user
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "nonResourceAttributes": {"path": PATH, "verb": "get"},
        }
        asked = _request(SUBJECT_ACCESS_REVIEWS, spec)
        right = (await self._client.call(asked, AccessReview)).status
        return OK if right.allowed and not right.denied else FORBIDDEN

    def _keep(self, digest: bytes, status: int) -> None:
        allowed = status == OK
        kept = self._allowed if allowed else self._refused
        kept.pop(digest, None)
        if len(kept) >= KEPT:
            del kept[next(iter(kept))]  # the oldest
        seconds = ALLOWED_SECONDS if allowed else REFUSED_SECONDS
        kept[digest] = (time.monotonic() + seconds, status)


def _request(resource: Resource, spec: dict[str, Any]) -> Request:
    review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    asked = requests.create(resource, "", review)
    return msgspec.structs.replace(asked, timeout=_SECONDS, tries=1, safe=True)
