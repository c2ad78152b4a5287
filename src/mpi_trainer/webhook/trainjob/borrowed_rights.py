"""What a TrainJob and its runtime together ask beyond the user's own rights. Pure.

A ClusterTrainingRuntime is an administrator's word: whoever may create a job may use it as it is,
with a program of their own in the containers that are there for it. What a job's patches add is
the user's wish, and so is a TrainingRuntime, which users write. Danger: a claim of the runtime is
trusted in the container and volume that it was written for, and nowhere else.
"""

from __future__ import annotations

from msgspec.structs import replace

from mpi_trainer.api.effective.combine import DATASET, MODEL, Effective, effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.errors import Path, field
from mpi_trainer.api.kinds.runtime import CLUSTER, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.render.trainjob.children import secret_name
from mpi_trainer.webhook.borrowed_rights import (
    Brought,
    Claim,
    Key,
    Template,
    brought,
    claims,
    facts,
)
from mpi_trainer.webhook.pod_fields import CONTAINER_LISTS

_FOR_USERS = frozenset({NODE_CONTAINER, DATASET, MODEL})
"""the containers that run what a user names"""


def train_brought(job: TrainJob, runtime: Runtime, before: TrainJob | None = None) -> Brought:
    """What a new job brings, or the change of the job that was there `before`."""
    own = secret_name(job.name)
    new = templates(effective(job, runtime))
    given = templates(effective(_bare(job), runtime))
    old = () if before is None else templates(effective(before, runtime))
    found = brought(old, new, own)
    there = {claim.key for claim in claims(given, own)}
    trusted = there - _opened(there, given, new) if runtime.kind == CLUSTER else set()
    asked = (claim for claim in found.claims if claim.key not in trusted)
    return Brought(tuple(_told(claim, claim.key in there) for claim in asked), found.program)


def templates(job: Effective) -> tuple[Template, ...]:
    return tuple(Template(one.name, (one.name,), one.template.content) for one in job.jobs)


def _bare(job: TrainJob) -> TrainJob:
    """A job that uses the runtime as it is."""
    return replace(job, spec=replace(job.spec, trainer=None, initializer=None, runtime_patches=()))


def _told(claim: Claim, in_runtime: bool) -> Claim:
    path: Path = ("spec", "runtimeRef", "name") if in_runtime else ("spec",)
    name, *steps = claim.path
    where = field(tuple(steps[1:] if steps[0] == "spec" else steps))
    return replace(claim, path=path, wish=f"in the pods of `{name}`, {where}: {claim.wish}")


def _opened(there: set[Key], given: tuple[Template, ...], new: tuple[Template, ...]) -> set[Key]:
    """What the runtime grants to containers of its own, in pods where patches reach into these.

    A patched variable, or another volume under the name of one that is mounted, is enough for a
    program of the user's to run there.
    """
    known = facts(given)
    volumes = {key[:4] for key in known if key[1:3] == ("spec", "volumes")}
    reached = {key[0] for key in facts(new) - known if _runtimes_own(key) or key[:4] in volumes}
    return {key for key in there if key[0] in reached and _runtimes_own(key)}


def _runtimes_own(key: Key) -> bool:
    return key[1] == "spec" and key[2] in CONTAINER_LISTS and key[3] not in _FOR_USERS
