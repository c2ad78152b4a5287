"""Which pods are a TrainJob's, and all of them, listed at the moment when they matter.

A pod is the job's if it belongs to a Job of its JobSet, by owner references and uids: labels find
candidates and prove nothing. A TrainJob's Jobs are not watched, so the Job that a pod names as its
controller is read once, its metadata alone, and remembered until the job is forgotten. Danger: a
Job that is gone can no longer be read; its pods count only if it was read before.

Only pods that have ended are watched: a job of hundreds changes thousands of times before that, and
JobSet's counts tell whether it runs. What a job waits for only its living pods know. On a full
cluster many jobs wait, and ask within moments of each other: one list answers them all.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from mpi_trainer.api.kinds.labels import LABEL_JOBSET_UID, LABEL_TRAINJOB
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.objects import Answer, Pod
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.lists import list_all
from mpi_trainer.kube.resources import JOBS, JOBSETS, PODS
from mpi_trainer.runtime.coalesce import CoalescedReads
from mpi_trainer.runtime.partial import OwnerRef

MOST = 64
"""Jobs that one pass reads; whoever floods a job with false pods costs no more than that"""


class _JobOwners(msgspec.Struct):
    """The uids of Jobs that were read, and of the JobSet that controls each; empty: none does."""

    holders: dict[str, str] = {}


class PodOwners:
    def __init__(self, client: Client, memories: JobMemories) -> None:
        self._client = client
        self._memories = memories

    async def owned(
        self, job: TrainJob, job_set: str, candidates: Iterable[Pod]
    ) -> tuple[Pod, ...]:
        """Those of `candidates` that belong to the JobSet with the uid `job_set`, the job's own."""
        named = [(pod, _job(pod)) for pod in candidates if _claims(pod, job_set)]
        if not named:
            return ()
        holders = self._memories.part(job.metadata.uid, _JobOwners).holders
        unknown = {
            one.uid: one
            for _, one in named
            if one is not None and one.uid not in holders and one.name.startswith(f"{job.name}-")
        }
        asked = list(unknown.values())[:MOST]
        answers = await asyncio.gather(*(self._holder(job.namespace, one) for one in asked))
        holders.update((one.uid, holder) for one, holder in zip(asked, answers, strict=True))
        return tuple(
            pod for pod, one in named if one is not None and holders.get(one.uid) == job_set
        )

    async def _holder(self, namespace: str, job: OwnerRef) -> str:
        """The uid of the JobSet that controls this very Job; empty: none does."""
        try:
            get = requests.brief(requests.get(JOBS, namespace, job.name))
            found = (await self._client.call(get, Answer)).metadata
        except NotFound:
            return ""
        owner = found.controller()
        if found.uid != job.uid or owner is None or not owner.of(JOBSETS):
            return ""
        return owner.uid


def _claims(pod: Pod, job_set: str) -> bool:
    return bool(job_set) and pod.metadata.labels.get(LABEL_JOBSET_UID) == job_set


def _job(pod: Pod) -> OwnerRef | None:
    owner = pod.metadata.controller()
    return owner if owner is not None and owner.of(JOBS) else None


GATHER: Final = 0.2
"""seconds; a job asks after ten seconds of waiting, or every half a second while it resumes"""


class AllPods:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: defaultdict[str, set[str]] = defaultdict(set)
        self._lists = CoalescedReads(self._list, GATHER)

    async def listed(self, job: TrainJob) -> tuple[Pod, ...]:
        """As they are now, whatever the watch has shown; one that cannot be read is left out."""
        self._asked[job.namespace].add(job.name)
        found = await self._lists.get(job.namespace)
        return tuple(found.get(job.name, ()))

    async def _list(self, namespace: str) -> dict[str, list[Pod]]:
        """Those of all jobs of the namespace that were asked for, by their jobs."""
        labels = f"{LABEL_TRAINJOB} in ({','.join(sorted(self._asked.pop(namespace)))})"
        page = await list_all(self._client, PODS, Pod, namespace=namespace, labels=labels)
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in page.items:
            found[pod.metadata.labels[LABEL_TRAINJOB]].append(pod)
        return found
