"""What a TrainJob and its runtime together ask beyond the user's own rights. Pure.

Administrators write ClusterTrainingRuntimes: whoever may create a job may use one as it is, with a
program of their own in the containers that are there for it. What a job's patches add needs the
user's own rights, and so does a TrainingRuntime, which users write. Danger: a claim of the runtime
is trusted in the container and volume that it was written for, and nowhere else.
"""

from __future__ import annotations

from msgspec.structs import replace

from mpi_trainer.api.effective.combine import DATASET, MODEL, Effective, effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.errors import Path, field
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.render import names
from mpi_trainer.webhook import borrowed_rights
from mpi_trainer.webhook.borrowed_rights import (
    AddedClaims,
    Key,
    RightClaim,
    SourceTemplate,
    claims,
    value_at,
    values_by_path,
)
from mpi_trainer.webhook.equality import canonical
from mpi_trainer.webhook.pod_fields import CONTAINER_LISTS, MAKE_PODS, Right

_FOR_USERS = frozenset({NODE_CONTAINER, DATASET, MODEL})
"""the containers that run what a user names"""


def added_claims(job: TrainJob, runtime: Runtime, before: TrainJob | None = None) -> AddedClaims:
    """Those of a new job, or of the change of the job that was there `before`."""
    own_secret = names.ssh_secret(job.name)
    new = templates(effective(job, runtime))
    given = templates(effective(_unpatched(job), runtime))
    old = () if before is None else templates(effective(before, runtime))
    added = borrowed_rights.added_claims(old, new, own_secret)
    granted = {claim.key for claim in claims(given, own_secret)}
    trusted = granted - _reached(granted, given, new) if runtime.kind == CLUSTER else set()
    asked = (claim for claim in added.claims if claim.key not in trusted)
    located = tuple(_located(claim, claim.key in granted) for claim in asked)
    return AddedClaims(located, added.new_program)


def runtime_claims(old: object, new: object) -> tuple[RightClaim, ...]:
    """Those of a new runtime of either kind as it came, or of the change of `old`."""
    made = _volume_claims(new)
    if old is None:
        return (*claims(runtime_templates(new)), *made)
    added = borrowed_rights.added_claims(runtime_templates(old), runtime_templates(new))
    before = _volume_claims(old)
    return (*added.claims, *(claim for claim in made if claim not in before))


def runtime_templates(runtime: object) -> tuple[SourceTemplate, ...]:
    """Of a runtime of either kind as it came, whatever came."""
    path: Path = ("spec", "template", "spec", "replicatedJobs")
    below: Path = ("template", "spec", "template")
    jobs = value_at(runtime, *path)
    return tuple(
        SourceTemplate(str(value_at(job, "name")), (*path, n, *below), value_at(job, *below))
        for n, job in enumerate(jobs if isinstance(jobs, list) else ())
    )


def _volume_claims(runtime: object) -> tuple[RightClaim, ...]:
    """What a runtime has its JobSets make beside pods."""
    path: Path = ("spec", "template", "spec", "volumeClaimPolicies")
    value = value_at(runtime, *path)
    effect = "PersistentVolumeClaims would be created"
    rights = (MAKE_PODS, Right("create", "persistentvolumeclaims"))
    return (RightClaim(path, value, effect, rights, ("", canonical(value))),) if value else ()


def templates(job: Effective) -> tuple[SourceTemplate, ...]:
    return tuple(SourceTemplate(one.name, (one.name,), one.template.content) for one in job.jobs)


def _unpatched(job: TrainJob) -> TrainJob:
    """A job that uses the runtime as it is."""
    return replace(job, spec=replace(job.spec, trainer=None, initializer=None, runtime_patches=()))


def _located(claim: RightClaim, in_runtime: bool) -> RightClaim:
    """With the field of the TrainJob to which the claim belongs."""
    path: Path = ("spec", "runtimeRef", "name") if in_runtime else ("spec",)
    name, *steps = claim.path
    where = field(tuple(steps[1:] if steps[0] == "spec" else steps))
    return replace(claim, path=path, effect=f"in the pods of `{name}`, {where}: {claim.effect}")


def _reached(
    granted: set[Key], given: tuple[SourceTemplate, ...], new: tuple[SourceTemplate, ...]
) -> set[Key]:
    """What the runtime grants to containers of its own, in pods where patches reach into these.

    A patched variable, or another volume under the name of one that is mounted, is enough for a
    program of the user's to run there.
    """
    known = values_by_path(given)
    volumes = {key[:4] for key in known if key[1:3] == ("spec", "volumes")}
    reached = {
        key[0] for key in values_by_path(new) - known if _runtimes_own(key) or key[:4] in volumes
    }
    return {key for key in granted if key[0] in reached and _runtimes_own(key)}


def _runtimes_own(key: Key) -> bool:
    return key[1] == "spec" and key[2] in CONTAINER_LISTS and key[3] not in _FOR_USERS
