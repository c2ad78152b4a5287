"""What only the API server knows about a job: quotas, the user's rights, the pods' chances.

Each question is bounded; one that gets no answer in time is answered with a warning and the job
is admitted, because a slow cluster must not stop everybody's work. The exception is a right that
the user must hold: without an answer, no. So is the number of rights that one job makes us ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

import msgspec

from mpi_trainer.api.errors import FORBIDDEN, FieldError
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_TRAINJOB, without_reserved
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob
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
)
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob import children as render
from mpi_trainer.runtime.off_loop import POD_BYTES, OffLoop
from mpi_trainer.runtime.partial import Meta, Partial
from mpi_trainer.webhook import quota, refusals, resource_demand
from mpi_trainer.webhook.borrowed_rights import Claim
from mpi_trainer.webhook.pod_fields import MAKE_PODS, Right
from mpi_trainer.webhook.review import Request, User

SECONDS = 3.0
UNANSWERED = "Not checked"
MOST_RIGHTS = 20
MOST_TOLD = 20
MOST_PAGES = 10
"""of 500 pods each, that are read to tell how many jobs hold a quota"""
_JOB_LABELS = (LABEL_JOB, LABEL_TRAINJOB)

Findings = tuple[tuple[FieldError, ...], tuple[FieldError, ...]]
Object = dict[str, Any]


class Answer(ApiValue, frozen=True):
    allowed: bool = False


class AccessReview(ApiValue, frozen=True):
    status: Answer = Answer()


class QuotaList(ApiValue, frozen=True):
    items: tuple[quota.ResourceQuota, ...] = ()


class ExistingObject(Partial, frozen=True):
    metadata: Meta = Meta()


class ListMeta(Partial, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class Page(Partial, frozen=True):
    """Of metadata alone, where the API server writes an empty list as null."""

    metadata: ListMeta = ListMeta()
    items: tuple[ExistingObject, ...] | None = None


class ServerChecks:
    """The questions about MPIJobs, over one client, and those that other kinds share."""

    def __init__(self, client: Client, domain: str = "", seconds: float = SECONDS) -> None:
        self._client = client
        self._domain = domain
        self._seconds = seconds
        self.long = OffLoop()

    async def about(
        self, job: MPIJob | None, questions: resource_demand.Questions, request: Request
    ) -> Findings:
        """Errors and warnings, from all questions at once."""
        claims, place = questions.claims, request.namespace
        asked: list[Awaitable[Findings]] = [self.held(claims, place, request.user_info)]
        if job is not None and questions.room:
            asked.append(self.room(resource_demand.of_mpijob(job), place, left=questions.left))
        if job is not None and questions.pods:
            what = "whether the cluster would take the pods"
            asked.append(self.bounded(self._pods(job, request.size), what))
        return together(await asyncio.gather(*asked))

    async def is_of_a_job(self, request: Request) -> bool:
        """Whether a pod's owners lead to a job: by its Job, and the Job's JobSet if it has one.

        Each is read and compared by uid; that a Job or JobSet has such an owner only a controller
        can bring about, since it is asked here as well.
        """
        meta = (request.object or {}).get("metadata") or {}
        try:
            async with asyncio.timeout(self._seconds):
                owner = typed.convert(meta, Meta).controller()
                for resource in (JOBS, JOBSETS):
                    if owner is None or not owner.of(resource):
                        return False
                    asked = requests.brief(requests.get(resource, request.namespace, owner.name))
                    found: Meta = (await self._call(asked, ExistingObject)).metadata
                    if found.uid != owner.uid:
                        return False
                    owner = found.controller()
                    if owner is not None and (owner.of(MPIJOBS) or owner.of(TRAINJOBS)):
                        return True
        except (TimeoutError, KubeError, ValueError, msgspec.MsgspecError):
            pass
        return False

    async def bounded(self, question: Awaitable[Findings], what: str) -> Findings:
        """The answer to `question`, or a warning where it does not come in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await question
        except (TimeoutError, KubeError):
            rule = f"{what} could not be asked in {self._seconds:g} s"
            remedy = "the job is taken as it is; look at its status"
            return (), (FieldError((), UNANSWERED, rule=rule, remedy=remedy),)

    async def room(
        self, asked: resource_demand.Asking, namespace: str, *, left: bool = True
    ) -> Findings:
        """Whether the namespace's quotas have room; `left`: whether they have it now, too."""
        if not asked.stages:
            return (), ()
        what = "the namespace's quota"
        errors, warnings = await self.bounded(self._quota(asked, namespace), what)
        return errors, tuple(w for w in warnings if left or w.problem != quota.SHORT)

    async def _quota(self, asked: resource_demand.Asking, place: str) -> Findings:
        listed = await self._call(requests.list_page(RESOURCE_QUOTAS, place), QuotaList)
        if not listed.items:
            return (), ()
        counted = await asyncio.gather(*(self._users(place, label) for label in _JOB_LABELS))
        users, more = sum(jobs for jobs, _ in counted), any(more for _, more in counted)
        return (
            quota.errors(asked, listed.items, users, more=more),
            quota.warnings(asked, listed.items, users, more=more),
        )

    async def _users(self, place: str, label: str) -> tuple[int, bool]:
        """How many jobs have pods that say so by this label, and whether there are more: of a crowd
        of pods only so many are read."""
        jobs: set[str] = set()
        token = ""
        for _ in range(MOST_PAGES):
            asked = requests.list_page(PODS, place, labels=label, continue_=token)
            page: Page = await self._call(requests.brief_list(asked), Page)
            jobs.update(pod.metadata.labels.get(label, "") for pod in page.items or ())
            token = page.metadata.continue_
            if not token:
                return len(jobs), False
        return len(jobs), True

    async def _pods(self, job: MPIJob, size: int) -> Findings:
        size += job.workers * POD_BYTES
        conflicts, roles = await self.long.on(job.namespace, size, _roles, job, self._domain)
        if conflicts:
            return conflicts, ()
        found = await asyncio.gather(*(self._pod(job, role, pod) for role, pod in roles))
        return refusals.findings(error for errors in found for error in errors)

    async def _pod(self, job: MPIJob, role: str, pod: Object) -> tuple[FieldError, ...]:
        refusal = await self.refusal(job.namespace, pod)
        return refusals.of_role(role, refusal) if refusal else ()

    async def refusal(self, namespace: str, pod: Object) -> str:
        """Why the API server would not take such a pod; empty where it would, or would later."""
        tried = requests.create(PODS, namespace, nameless(pod), dry_run=True)
        try:
            await self._call(tried, None)
        except (Forbidden, Invalid) as error:
            return "" if refusals.about_quota(error.message) else error.message
        except ApiError as error:
            if error.code == 400:
                return error.message
            raise
        return ""

    async def held(self, claims: Sequence[Claim], namespace: str, user: User) -> Findings:
        """An error for each claim that `user` has no right to; without a namespace, in all of them.

        Beyond `MOST_RIGHTS` nothing is asked, and so nothing is held.
        """
        special = {right for claim in claims for right in claim.rights if right != MAKE_PODS}
        asked = [MAKE_PODS, *sorted(special, key=Right.words)[:MOST_RIGHTS]] if claims else []
        answers = await asyncio.gather(*(self._may(user, namespace, right) for right in asked))
        told = dict(zip(asked, answers, strict=True))
        where = "in this namespace" if namespace else "in all namespaces"
        errors = []
        for claim in claims:
            answer = {told.get(right) for right in claim.rights}
            if True not in answer:
                said = claim.unanswered if None in answer else claim.refusal
                errors.append(said(user.username, where))
        return _screen(errors), ()

    async def _may(self, user: User, namespace: str, right: Right) -> bool | None:
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
            async with asyncio.timeout(self._seconds):
                asked = requests.create(SUBJECT_ACCESS_REVIEWS, "", review)
                answer = await self._client.call(asked, AccessReview)
        except (TimeoutError, KubeError):
            return None
        return answer.status.allowed

    async def _call(self, request: requests.Request, kind: Any) -> Any:
        return await self._client.call(msgspec.structs.replace(request, tries=1), kind)


def _roles(
    job: MPIJob, domain: str
) -> tuple[tuple[FieldError, ...], tuple[tuple[str, Object], ...]]:
    """What stands in the way of the job's pods, or else one of each role."""
    plan = layout(job, domain)
    conflicts = render.errors(plan, job)
    if conflicts:
        return conflicts, ()
    made = render.children(plan, job, render.Facts(domain=domain))
    workers = ((WORKER, one) for one in made.workers[:1])
    return (), ((LAUNCHER, made.launcher_job["spec"]["template"]), *workers)


def _screen(errors: Sequence[FieldError]) -> tuple[FieldError, ...]:
    """As many as somebody reads."""
    rest = len(errors) - MOST_TOLD
    if rest <= 0:
        return tuple(errors)
    more = FieldError((), FORBIDDEN, rule=f"and {rest} more that need a right")
    return (*errors[:MOST_TOLD], more)


def together(found: Iterable[Findings]) -> Findings:
    errors, warnings = zip(*found, strict=True)
    return tuple(e for part in errors for e in part), tuple(w for part in warnings for w in part)


def nameless(pod: Object) -> Object:
    """A pod to be tried and not made: under no name that may be taken, and nobody's child, so also
    without the labels that only the controller may set."""
    given = pod.get("metadata") or {}
    meta = {key: without_reserved(given[key]) for key in ("labels", "annotations") if key in given}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "generateName": "admission-"},
        "spec": {**pod["spec"], "restartPolicy": pod["spec"].get("restartPolicy", "Never")},
    }
