"""A job that was described for no particular place, as a cluster takes it. Pure.

On this machine there is no image, and Python is the caller's own; on a cluster the image is what
`MPI_TRAINER_IMAGE` says, and Python is the image's. mpirun is asked to put the rank before every
line, as on this machine, so that logs can be read by rank (AC-9); the agent in the launcher hears
that as a variable, and nobody else does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.mpijob import LAUNCHER, MPIJob
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.kinds.runtime import MPI, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.layout.mpijob import choose
from mpi_trainer.sdk.errors import JobError
from mpi_trainer.sdk.job.specs import LOCAL_IMAGE

replace = msgspec.structs.replace

IMAGE: Final = "MPI_TRAINER_IMAGE"
TAG_OPTION: Final = "MPI_TRAINER_TAG_OPTION"
_PYTHON: Final = "python3"


def for_cluster(job: MPIJob, image: str, python: str) -> MPIJob:
    """`image` stands for no image at all, `python` is how the caller's own Python is called."""
    option = _tag_option(job)
    replicas = {}
    for role, replica in (job.spec.mpi_replica_specs or {}).items():
        content = replica.template.content
        containers: list[dict[str, Any]] = (content.get("spec") or {}).get("containers") or []
        for container in containers:
            if container.get("image") == LOCAL_IMAGE:
                _with_image(container, job, image, python)
        if role == LAUNCHER and option and containers:
            _tagging(containers[0], option)
        replicas[role] = replace(replica, template=PodTemplate.of(content))
    return replace(job, spec=replace(job.spec, mpi_replica_specs=replicas))


def _with_image(container: dict[str, Any], job: MPIJob, image: str, python: str) -> None:
    if not image:
        raise JobError(
            f"job {job.name} names no image, and on a cluster it needs one",
            f"Give image=..., or set {IMAGE} to the image that jobs should use.",
        )
    container["image"] = image
    if container.get("command"):
        container["command"] = [_PYTHON if w == python else w for w in container["command"]]


def _tag_option(job: MPIJob) -> str:
    """Empty where the agent does not run the command."""
    filled = mpijob_with_defaults(job)
    if choose(filled).level != "full":
        return ""
    used = filled.spec.mpi_implementation
    return next((impl.tag_option for impl in REGISTRY if impl.name == used), "")


def with_ranks(job: TrainJob, runtime: Runtime) -> TrainJob:
    """The TrainJob with ranks before its lines, where its runtime starts ranks by an MPI."""
    if runtime.policy != MPI or any(one.get("name") == TAG_OPTION for one in job.trainer.env):
        return job
    used = (impl for impl in REGISTRY if impl.name == runtime.mpi_implementation)
    options = ({"name": TAG_OPTION, "value": impl.tag_option} for impl in used)
    trainer = replace(job.trainer, env=(*job.trainer.env, *options))
    return replace(job, spec=replace(job.spec, trainer=trainer))


def _tagging(container: dict[str, Any], option: str) -> None:
    env = [*(container.get("env") or ())]
    if all(variable.get("name") != TAG_OPTION for variable in env):
        container["env"] = [*env, {"name": TAG_OPTION, "value": option}]
