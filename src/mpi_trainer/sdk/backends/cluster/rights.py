"""Which rights the caller has, as the API server itself says it (SelfSubjectAccessReview)."""

from __future__ import annotations

import asyncio

from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.kube import requests
from mpi_trainer.kube.resources import SELF_SUBJECT_ACCESS_REVIEWS as REVIEWS
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.permissions import ACTIONS, Permission, Right, permissions


class _Status(ApiValue, frozen=True):
    allowed: bool = False
    reason: str = ""


class _Review(ApiValue, frozen=True):
    status: _Status = _Status()


async def allowed_actions(server: ApiServer, namespace: str) -> tuple[Permission, ...]:
    rights = [*dict.fromkeys(right for needed in ACTIONS.values() for right in needed)]
    answers = await asyncio.gather(*(_asked(server, right, namespace) for right in rights))
    missing = {
        right: answer.reason
        for right, answer in zip(rights, answers, strict=True)
        if not answer.allowed
    }
    return permissions(missing, namespace)


async def _asked(server: ApiServer, right: Right, namespace: str) -> _Status:
    resource, _, sub = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": sub,
        "namespace": namespace,
    }
    review = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    answer: _Review = await server.call(requests.create(REVIEWS, "", review), _Review)
    return answer.status
