"""What only the API server knows about a job of either kind: rights, quotas, the fate of its pods.

Every question is bounded. One that gets no answer in time becomes a warning and the job is
admitted, because a slow cluster must not stop everybody's work. A right that the user must hold is
the exception: without an answer it is not held. The number of rights that are asked for one job is
bounded too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from mpi_trainer.api.errors import FORBIDDEN, FieldError
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_TRAINJOB, without_reserved
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.yaml import typed
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import ApiError, Forbidden, Invalid, KubeError
from mpi_trainer.kube.resources import (
    JOBS,
    JOBSETS,
    MPIJOBS,
    PODS,
    RESOURCE_QUOTAS,
    SUBJECT_ACCESS_REVIEWS,
    TRAINJOBS,
    Resource,
)
from mpi_trainer.runtime.off_loop import OffLoop
from mpi_trainer.runtime.partial import Meta, Partial
from mpi_trainer.webhook import quota, refusals
from mpi_trainer.webhook.borrowed_rights import RightClaim
from mpi_trainer.webhook.pod_fields import MAKE_PODS, Right
from mpi_trainer.webhook.resource_demand import JobDemand
from mpi_trainer.webhook.review import AdmissionRequest, NeededChecks, RequestUser

SECONDS = 3.0
UNANSWERED = "Not checked"
MOST_RIGHTS = 20
MOST_ERRORS = 20
MOST_PAGES = 10
"""of 500 pods' metadata each, that are read to count the jobs that use a quota"""
WHOLE_PAGE = 20
MOST_WHOLE_PAGES = 25
"""of whole objects, each of which may be as large as etcd takes"""
_JOB_LABELS = (LABEL_JOB, LABEL_TRAINJOB)

CheckResult = tuple[tuple[FieldError, ...], tuple[FieldError, ...]]
"""errors and warnings"""
Object = dict[str, Any]
T = TypeVar("T")


class AccessReviewStatus(ApiValue, frozen=True):
    allowed: bool = False


class AccessReview(ApiValue, frozen=True):
    status: AccessReviewStatus = AccessReviewStatus()


class QuotaList(ApiValue, frozen=True):
    items: tuple[quota.ResourceQuota, ...] = ()


class ExistingObject(Partial, frozen=True):
    metadata: Meta = Meta()


class PageMeta(Partial, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class Page(Partial, Generic[T], frozen=True):
    """Of metadata alone the API server writes an empty list as null."""

    metadata: PageMeta = PageMeta()
    items: tuple[T, ...] | None = None


class ServerChecks:
    """The questions that both kinds share, over one client; each may take `seconds`."""

    def __init__(self, client: Client, seconds: float = SECONDS) -> None:
        self._client = client
        self.seconds = seconds
        self.off_loop = OffLoop()
        self._whole_pages = asyncio.Lock()

    async def call_once(self, request: requests.Request, kind: Any) -> Any:
        return await self._client.call(msgspec.structs.replace(request, tries=1), kind)

    async def _bounded(self, question: Awaitable[CheckResult], what: str) -> CheckResult:
        """The result of `question`, or a warning where it does not come in time."""
        try:
            async with asyncio.timeout(self.seconds):
                return await question
        except (TimeoutError, KubeError):
            rule = f"{what} could not be asked in {self.seconds:g} s"
            remedy = "the job is taken as it is; look at its status"
            return (), (FieldError((), UNANSWERED, rule=rule, remedy=remedy),)

    async def result(
        self,
        needed: NeededChecks,
        namespace: str,
        user: RequestUser,
        pods: Callable[[], Awaitable[CheckResult]] | None,
    ) -> CheckResult:
        """From all questions at once; `pods` tries the pods of the job."""
        asked: list[Awaitable[CheckResult]] = [self.rights(needed.claims, namespace, user)]
        if needed.demand is not None:
            asked.append(self._quotas(needed.demand, namespace, left=needed.quota_left))
        if needed.pods and pods is not None:
            asked.append(self._bounded(pods(), "whether the cluster would take the pods"))
        errors, warnings = zip(*await asyncio.gather(*asked), strict=True)
        return tuple(e for part in errors for e in part), tuple(
            w for part in warnings for w in part
        )

    async def rights(
        self, claims: Sequence[RightClaim], namespace: str, user: RequestUser
    ) -> CheckResult:
        """An error for each claim that `user` has no right to; without a namespace, in all of them.

        Beyond `MOST_RIGHTS` nothing is asked, and so nothing is held.
        """
        special = {right for claim in claims for right in claim.rights if right != MAKE_PODS}
        asked = [MAKE_PODS, *sorted(special, key=Right.words)[:MOST_RIGHTS]] if claims else []
        answers = await asyncio.gather(*(self._may(user, namespace, right) for right in asked))
        held = dict(zip(asked, answers, strict=True))
        where = "in this namespace" if namespace else "in all namespaces"
        errors = []
        for claim in claims:
            answer = {held.get(right) for right in claim.rights}
            if True not in answer:
                error = claim.unanswered if None in answer else claim.refusal
                errors.append(error(user.username, where))
        return _bounded_errors(errors), ()

    async def _may(self, user: RequestUser, namespace: str, right: Right) -> bool | None:
        """None where there was no answer."""
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "namespace": "" if right.cluster else namespace,
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "name": right.name,
        }
        review = {
            "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
            "kind": SUBJECT_ACCESS_REVIEWS.kind,
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
                "resourceAttributes": attributes,
            },
        }
        try:
            async with asyncio.timeout(self.seconds):
                asked = requests.create(SUBJECT_ACCESS_REVIEWS, "", review)
                answer = await self._client.call(asked, AccessReview)
        except (TimeoutError, KubeError):
            return None
        return answer.status.allowed

    async def _quotas(self, demand: JobDemand, namespace: str, *, left: bool) -> CheckResult:
        """Whether the quotas are large enough; `left`: whether enough of them is left now, too."""
        if not demand.stages:
            return (), ()
        what = "the namespace's quota"
        errors, warnings = await self._bounded(self._room(demand, namespace), what)
        return errors, tuple(w for w in warnings if left or w.problem != quota.SHORT)

    async def _room(self, demand: JobDemand, namespace: str) -> CheckResult:
        listed = await self.call_once(requests.list_page(RESOURCE_QUOTAS, namespace), QuotaList)
        if not listed.items:
            return (), ()
        counts = (self.jobs_with_pods(namespace, label) for label in _JOB_LABELS)
        counted = await asyncio.gather(*counts)
        users, more = sum(jobs for jobs, _ in counted), any(more for _, more in counted)
        return (
            quota.errors(demand, listed.items, users, more=more),
            quota.warnings(demand, listed.items, users, more=more),
        )

    async def jobs_with_pods(self, namespace: str, label: str) -> tuple[int, bool]:
        """How many values of `label` pods have, and whether there are more: of many pods only so
        many are read."""
        jobs: set[str] = set()
        token = ""
        for _ in range(MOST_PAGES):
            asked = requests.list_page(PODS, namespace, labels=label, continue_=token)
            page = await self.call_once(requests.brief_list(asked), Page[ExistingObject])
            jobs.update(pod.metadata.labels.get(label, "") for pod in page.items or ())
            token = page.metadata.continue_
            if not token:
                return len(jobs), False
        return len(jobs), True

    async def first(self, resource: Resource, kind: type[T], namespace: str) -> list[T]:
        """What the first `MOST_WHOLE_PAGES` of a collection hold; without a namespace, of all.

        One page at a time, whoever asks: users choose how large their objects are.
        """
        found: list[T] = []
        token = ""
        for _ in range(MOST_WHOLE_PAGES):
            asked = requests.list_page(resource, namespace, limit=WHOLE_PAGE, continue_=token)
            async with self._whole_pages:
                page = await self.call_once(asked, Page[kind])  # type: ignore[valid-type]
            found += page.items or ()
            token = page.metadata.continue_
            if not token:
                break
        return found

    async def pod_refusal(self, namespace: str, pod: Object) -> str:
        """Why the API server would not take such a pod; empty where it would, or would later."""
        tried = requests.create(PODS, namespace, nameless(pod), dry_run=True)
        try:
            await self.call_once(tried, None)
        except (Forbidden, Invalid) as error:
            return "" if refusals.about_quota(error.message) else error.message
        except ApiError as error:
            if error.code == 400:
                return error.message
            raise
        return ""

    async def belongs_to_job(self, request: AdmissionRequest) -> bool:
        """Whether a pod's owners lead to a job: by its Job, and the Job's JobSet if it has one.

        Each is read and compared by uid. Only a controller can give a Job or JobSet such an owner,
        since these are reviewed as well.
        """
        meta = (request.object or {}).get("metadata") or {}
        try:
            async with asyncio.timeout(self.seconds):
                owner = typed.convert(meta, Meta).controller()
                for resource in (JOBS, JOBSETS):
                    if owner is None or not owner.of(resource):
                        return False
                    asked = requests.brief(requests.get(resource, request.namespace, owner.name))
                    found: Meta = (await self.call_once(asked, ExistingObject)).metadata
                    if found.uid != owner.uid:
                        return False
                    owner = found.controller()
                    if owner is not None and (owner.of(MPIJOBS) or owner.of(TRAINJOBS)):
                        return True
        except (TimeoutError, KubeError, ValueError, msgspec.MsgspecError):
            pass
        return False


def nameless(pod: Object) -> Object:
    """A pod for a dry run: under no name that may be taken, and nobody's child, so also without the
    labels that only the controller may set."""
    given = pod.get("metadata") or {}
    meta = {key: without_reserved(given[key]) for key in ("labels", "annotations") if key in given}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "generateName": "admission-"},
        "spec": {**pod["spec"], "restartPolicy": pod["spec"].get("restartPolicy", "Never")},
    }


def _bounded_errors(errors: Sequence[FieldError]) -> tuple[FieldError, ...]:
    """As many as somebody reads."""
    rest = len(errors) - MOST_ERRORS
    if rest <= 0:
        return tuple(errors)
    more = FieldError((), FORBIDDEN, rule=f"and {rest} more that need a right")
    return (*errors[:MOST_ERRORS], more)
