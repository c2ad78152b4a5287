"""Which parts of a TrainJob may still change, and when. Pure.

A job keeps its runtime, its trainer, its sources, its deadline and its manager for good. Runtime
patches are a queue's: they may change while the job is suspended, before or after the change, and
no Job of it runs. What a patch gives to containers, volumes and accounts stays as it was first
given. All of this is compared by meaning, so that a queue may write a job back in its own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path
from mpi_trainer.api.kinds.trainjob import PodSpecPatch, TrainJob
from mpi_trainer.webhook.equality import same

PATCHES: Path = ("spec", "runtimePatches")

_FIXED = ("runtimeRef", "initializer", "trainer", "activeDeadlineSeconds", "managedBy")
_GIVEN_ONCE = (
    "serviceAccountName",
    "volumes",
    "initContainers",
    "containers",
    "imagePullSecrets",
    "securityContext",
    "terminationGracePeriodSeconds",
)
_POD = ("template", "spec", "template", "spec")


def errors(old: TrainJob, new: TrainJob) -> tuple[FieldError, ...]:
    """Both with their defaults applied."""
    before, after = (msgspec.to_builtins(job.spec) for job in (old, new))
    fixed = [name for name in _FIXED if not same(before.get(name), after.get(name))]
    found = [
        FieldError(
            ("spec", name), FORBIDDEN, rule="a job keeps it for good", remedy="make a new job"
        )
        for name in fixed
    ]
    return (*found, *(_patches(old, new) if patches_changed(old, new) else ()))


def patches_changed(old: TrainJob, new: TrainJob) -> bool:
    return not same(_timeless(old), _timeless(new))


def _timeless(job: TrainJob) -> list[Any]:
    return [
        msgspec.to_builtins(msgspec.structs.replace(patch, time=None))
        for patch in job.spec.runtime_patches
    ]


def _patches(old: TrainJob, new: TrainJob) -> Iterator[FieldError]:
    if not old.spec.suspend and not new.spec.suspend:
        rule = "the runtime of a job that may run is not changed"
        yield FieldError(PATCHES, FORBIDDEN, rule=rule, remedy="suspend the job in the same change")
        return
    for one in new.status.jobs_status:
        if one.active:
            rule = f"its job `{one.name}` still runs"
            remedy = "wait until status.jobsStatus shows no active one"
            yield FieldError(PATCHES, FORBIDDEN, rule=rule, remedy=remedy)
    before, after = _pods(old), _pods(new)
    for key in before.keys() & after.keys():
        place, was = before[key]
        _, now = after[key]
        for name in _GIVEN_ONCE:
            if was.get(name) and now.get(name) and not same(was[name], now[name]):
                rule = "what a patch has given once stays so"
                remedy = "remove it in one change and add it in the next, or make a new job"
                yield FieldError((*place, *_POD, name), FORBIDDEN, rule=rule, remedy=remedy)


def _pods(job: TrainJob) -> dict[tuple[str, str], tuple[Path, Mapping[str, Any]]]:
    """What patches change in pods, by manager and replicated job, and where that is written."""
    found: dict[tuple[str, str], tuple[Path, Mapping[str, Any]]] = {}
    for n, patch in enumerate(job.spec.runtime_patches):
        for m, one in enumerate(patch.replicated_jobs):
            inside = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs", m)
            pod = msgspec.to_builtins(one.pod or PodSpecPatch())
            found[patch.manager, one.name] = ((*PATCHES, n, *inside), pod)
    return found
