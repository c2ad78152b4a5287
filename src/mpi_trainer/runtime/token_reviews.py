"""Bearer tokens, shown to the API server (TokenReview), and what came of each for a while.

Guarantee: a token is neither logged nor kept, only its digest, for a short time and in a bounded
number; no more than `at_once` are under review, and no more than `waiting` wait for that, whoever
sends them. As many again are of tokens that were good before, so that strangers keep nobody out.
Danger: what was proven holds on for `PROVEN_SECONDS`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from mpi_trainer.kube import requests
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import TOKEN_REVIEWS, Resource

T = TypeVar("T")

PROVEN_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 10.0
_SECONDS: Final = 5.0


class Busy(Exception):
    """Too many are waiting."""


class User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    def single_extra(self, name: str) -> str:
        """The value of an extra that has one; empty where it has not."""
        found = self.extra.get(name, ())
        return found[0] if len(found) == 1 else ""


class TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    audiences: tuple[str, ...] = ()


class TokenReview(msgspec.Struct, frozen=True):
    status: TokenStatus = TokenStatus()


def bearer(authorization: str) -> str:
    """The token in this header; empty where there is none."""
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.isascii() else ""


def token_review(token: str, *audiences: str) -> Request:
    spec = {"token": token, **({"audiences": audiences} if audiences else {})}
    return review(TOKEN_REVIEWS, spec)


def review(resource: Resource, spec: dict[str, Any]) -> Request:
    made = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    asked = requests.create(resource, "", made)
    return msgspec.structs.replace(asked, timeout=_SECONDS, tries=1, safe=True)


class _Lane:
    """Room for so many reviews at once, and for so many that wait."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._free = waiting

    async def __aenter__(self) -> None:
        if self._free <= 0:
            raise Busy
        self._free -= 1
        try:
            await self._room.acquire()
        except BaseException:
            self._free += 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._free += 1
        self._room.release()


class Reviews(Generic[T]):
    """Answers `T` that were asked for; `is_proven` tells those that may hold for longer."""

    def __init__(
        self,
        is_proven: Callable[[T], bool],
        *,
        at_once: int,
        waiting: int,
        kept: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_proven = is_proven
        self._most_kept = kept
        self._clock = clock
        # Apart, so that a flood of wrong tokens does not push the right ones out.
        self._proven: dict[bytes, tuple[float, T]] = {}
        self._refused: dict[bytes, tuple[float, T]] = {}
        self._strangers = _Lane(at_once, waiting)
        self._known = _Lane(at_once, waiting)

    async def answer(self, token: str, about: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What is known of the token `about` something, or what `ask` finds out; Busy."""
        digest = hashlib.sha256(f"{about}\n{token}".encode()).digest()
        for kept in (self._proven, self._refused):
            if digest in kept and self._clock() < kept[digest][0]:
                return kept[digest][1]
        async with self._known if digest in self._proven else self._strangers:
            found = await ask()
        self._keep(digest, found)
        return found

    def _keep(self, digest: bytes, answer: T) -> None:
        proven = self._is_proven(answer)
        kept = self._proven if proven else self._refused
        self._proven.pop(digest, None)
        self._refused.pop(digest, None)
        if len(kept) >= self._most_kept:
            del kept[next(iter(kept))]  # the oldest
        seconds = PROVEN_SECONDS if proven else REFUSED_SECONDS
        kept[digest] = (self._clock() + seconds, answer)
