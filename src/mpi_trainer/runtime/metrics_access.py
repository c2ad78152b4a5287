"""Who may read the metrics: whoever the API server knows and lets GET /metrics.

A bearer token is shown to the API server (TokenReview), and its owner's right is asked for
(SubjectAccessReview on the path). Guarantee: no answer means no; see `token_reviews` for what is
kept. Danger: a right that was taken away holds on for its `PROVEN_SECONDS`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import KubeError
from mpi_trainer.kube.resources import SUBJECT_ACCESS_REVIEWS
from mpi_trainer.runtime.token_reviews import (
    Busy,
    Reviews,
    TokenReview,
    bearer,
    review,
    token_review,
)

PATH: Final = "/metrics"
OK: Final = 200
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
CANNOT_ASK: Final = 503
KEPT: Final = 256
AT_ONCE: Final = 4
_WAITING: Final = 16

log = logging.getLogger(__name__)


class AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class AccessReview(msgspec.Struct, frozen=True):
    status: AccessStatus = AccessStatus()


class Access:
    """Answers for one API server."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._reviews: Reviews[int] = Reviews(
            lambda status: status == OK, at_once=AT_ONCE, waiting=_WAITING, kept=KEPT, clock=clock
        )

    async def judge(self, authorization: str) -> int:
        """The HTTP status for whoever sends this header: 200, 401, 403 or 503."""
        token = bearer(authorization)
        if not token:
            return UNKNOWN
        try:
            return await self._reviews.answer(token, PATH, lambda: self._review(token))
        except Busy:
            return CANNOT_ASK
        except KubeError as error:
            log.warning("cannot tell who may read the metrics: %s", error)
            return CANNOT_ASK

    async def _review(self, token: str) -> int:
        found = (await self._client.call(token_review(token), TokenReview)).status
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
        asked = review(SUBJECT_ACCESS_REVIEWS, spec)
        right = (await self._client.call(asked, AccessReview)).status
        return OK if right.allowed and not right.denied else FORBIDDEN
