"""Who may report for a TrainJob: a pod of its own, by the token that the kubelet gives it.

The token is shown to the API server (TokenReview) for the audience of this one job, and names its
pod; from the pod, owner references and uids lead over its Job and JobSet to the TrainJob. Labels
prove nothing, and a token of the namespace's account alone does not either. Guarantee: no answer
means no; see `token_reviews` for what is kept. Danger: a pod that has lost its job may report for
it for that module's `PROVEN_SECONDS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from mpi_trainer.controller.objects import Answer
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.resources import JOBS, JOBSETS, PODS, TRAINJOBS, Resource
from mpi_trainer.render.trainjob.reporting import audience
from mpi_trainer.runtime.partial import Key, Meta, OwnerRef
from mpi_trainer.runtime.token_reviews import Reviews, TokenReview, bearer, token_review

KEPT: Final = 4096
AT_ONCE: Final = 8
WAITING: Final = 64
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_CHAIN: Final = ((JOBS, JOBSETS), (JOBSETS, TRAINJOBS))


class Callers:
    """Answers for one API server."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._reviews: Reviews[str] = Reviews(
            bool, at_once=AT_ONCE, waiting=WAITING, kept=KEPT, clock=clock
        )

    async def job_uid(self, authorization: str, key: Key) -> str:
        """The uid of the TrainJob that whoever sends this header is a pod of; empty: of none.

        Busy where too many ask; KubeError where the API server cannot be asked.
        """
        token = bearer(authorization)
        if not token:
            return ""
        return await self._reviews.answer(token, str(key), lambda: self._asked(token, key))

    async def _asked(self, token: str, key: Key) -> str:
        wanted = audience(*key)
        found = (await self._client.call(token_review(token, wanted), TokenReview)).status
        if not found.authenticated or wanted not in found.audiences:
            return ""
        if not found.user.username.startswith(f"system:serviceaccount:{key.namespace}:"):
            return ""
        name, uid = found.user.single_extra(_POD_NAME), found.user.single_extra(_POD_UID)
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
