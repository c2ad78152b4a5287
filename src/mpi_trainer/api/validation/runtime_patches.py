"""Runtime patches: who wrote them, how many, and that what they name is there.

A patch of something that the runtime lacks would be silently without effect, or make a container
out of nothing; the error lists the names that are there. An entry without content is legal: Kueue
adds one to every job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mpi_trainer.api import names
from mpi_trainer.api.effective.combine import DATASET, MODEL, NODE
from mpi_trainer.api.errors import DUPLICATE, FORBIDDEN, INVALID, UNKNOWN, FieldError, Path
from mpi_trainer.api.kinds.jobset import JobSetView, ReplicatedJobView
from mpi_trainer.api.kinds.labels import reserved_errors
from mpi_trainer.api.kinds.trainjob import PodSpecPatch, ReplicatedJobPatch, RuntimePatch
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.validation import containers, rules

PATCHES: Path = ("spec", "runtimePatches")

_TEMPLATE = ("trainingRuntimeSpec", "template")
_POD = ("template", "spec", "template", "spec")
_OWN_ENV = (NODE, DATASET, MODEL)
_HTTP_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_MOST = {"volumes": 128, "imagePullSecrets": 64, "tolerations": 128, "schedulingGates": 16}


def errors(patches: Sequence[RuntimePatch]) -> rules.Errors:
    """What is wrong with them whatever the runtime."""
    yield from rules.at_most(PATCHES, len(patches), 16)
    yield from _unique(PATCHES, "manager", [patch.manager for patch in patches])
    for n, patch in enumerate(patches):
        path = (*PATCHES, n)
        yield from _manager((*path, "manager"), patch.manager)
        where = (*path, *_TEMPLATE, "spec", "replicatedJobs")
        jobs = patch.replicated_jobs
        yield from rules.at_most(where, len(jobs), 100)
        yield from _unique(where, "name", [job.name for job in jobs])
        if patch.template.metadata is not None:
            marked = (*path, *_TEMPLATE, "metadata")
            yield from rules.label_map((*marked, "labels"), patch.template.metadata.labels)
            yield from reserved_errors((*marked, "labels"), patch.template.metadata.labels)
        for m, job in enumerate(jobs):
            yield from _job((*where, m), job)


def compatibility_errors(patches: Sequence[RuntimePatch], jobset: JobSetView) -> rules.Errors:
    """What they name that the runtime has not."""
    there = {job.name: job for job in jobset.replicated_jobs}
    for n, patch in enumerate(patches):
        for m, job in enumerate(patch.replicated_jobs):
            path = (*PATCHES, n, *_TEMPLATE, "spec", "replicatedJobs", m)
            if job.name in there:
                yield from _containers(path, job, there[job.name])
            else:
                rule = f"the runtime has no such job, but {_listed(there)}"
                remedy = _remedy(job.name, there)
                yield FieldError((*path, "name"), UNKNOWN, job.name, rule, remedy)


def _manager(path: Path, manager: str) -> rules.Errors:
    domain, slash, rest = manager.partition("/")
    if not manager:
        yield rules.required(path, "must be set", "write for example `example.com/me`")
    elif not slash or not domain or not _HTTP_PATH.fullmatch(rest):
        rule, remedy = "must be a domain and a path", f"write for example `example.com/{domain}`"
        yield FieldError(path, INVALID, manager, rule, remedy)
    else:
        yield from rules.name_errors(path, manager, names.dns1123_subdomain(domain))


def _job(path: Path, job: ReplicatedJobPatch) -> rules.Errors:
    if not job.name:
        rule = "must name a job of the runtime"
        yield rules.required((*path, "name"), rule, "add for example `name: node`")
    yield from _marks(path, job)
    if job.pod is None:
        return
    pod = job.pod
    path = (*path, *_POD)
    for field, count in (
        ("volumes", len(pod.volumes)),
        ("imagePullSecrets", len(pod.image_pull_secrets)),
        ("tolerations", len(pod.tolerations)),
        ("schedulingGates", len(pod.scheduling_gates)),
    ):
        yield from rules.at_most((*path, field), count, _MOST[field])
    grace = pod.termination_grace_period_seconds
    where = (*path, "terminationGracePeriodSeconds")
    yield from rules.at_least(where, grace, 0, "set the seconds to wait, or remove it")
    yield from _env(path, pod)


def _marks(path: Path, job: ReplicatedJobPatch) -> rules.Errors:
    """What it writes onto the Job and its pods."""
    spec = job.template.spec if job.template else None
    metas = (
        (("template", "metadata"), job.template.metadata if job.template else None),
        ((*_POD[:-1], "metadata"), spec.template.metadata if spec and spec.template else None),
    )
    for inside, meta in metas:
        if meta is not None:
            where = (*path, *inside)
            yield from reserved_errors((*where, "labels"), meta.labels)
            yield from reserved_errors((*where, "annotations"), meta.annotations)


def _env(path: Path, pod: PodSpecPatch) -> rules.Errors:
    for field, listed in (("initContainers", pod.init_containers), ("containers", pod.containers)):
        yield from rules.at_most((*path, field), len(listed), 64)
        yield from _unique((*path, field), "name", [one.name for one in listed])
        for n, one in enumerate(listed):
            where = (*path, field, n)
            if one.env and one.name in _OWN_ENV and field == "containers":
                rule = f"the variables of `{one.name}` are the job's own, and cannot be patched"
                kind = "trainer" if one.name == NODE else "initializer"
                remedy = f"set them under spec.{kind}"
                yield FieldError((*where, "env"), FORBIDDEN, rule=rule, remedy=remedy)
            else:
                yield from containers.variables((*where, "env"), one.env)


def _containers(path: Path, patch: ReplicatedJobPatch, job: ReplicatedJobView) -> rules.Errors:
    if patch.pod is None:
        return
    spec = job.template.spec.template.view.spec
    for field, listed, there in (
        ("initContainers", patch.pod.init_containers, spec.init_containers),
        ("containers", patch.pod.containers, spec.containers),
    ):
        known = [one.name for one in there]
        for n, one in enumerate(listed):
            if one.name not in known:
                what = "init container" if field == "initContainers" else "container"
                rule = f"the runtime's job `{job.name}` has no such {what}, but {_listed(known)}"
                where = (*path, *_POD, field, n, "name")
                yield FieldError(where, UNKNOWN, one.name, rule, _remedy(one.name, known))


def _listed(known: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in known) or "none at all"


def _remedy(name: str, known: Iterable[str]) -> str:
    meant = nearest(name, list(known))
    return f"did you mean `{meant}`?" if meant else "name one of those, or remove the entry"


def _unique(path: Path, field: str, given: Sequence[str]) -> rules.Errors:
    for n, name in enumerate(given):
        if name and name in given[:n]:
            rule = f"another entry has this {field}"
            yield FieldError((*path, n, field), DUPLICATE, name, rule, "put both into one entry")
