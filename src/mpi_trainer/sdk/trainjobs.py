"""TrainJobs as the interfaces make and change them. Pure.

`with_env` and `with_mounts` are what `odh run` adds to a job from a file: variables go into the
job, where they reach every node; mounts into this run's copy of its runtime.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.runtime import Runtime
from mpi_trainer.api.tailoring import NODE_CONTAINER
from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.sdk.newjob import HostMount, add_mounts
from mpi_trainer.sdk.specs import variables

replace = msgspec.structs.replace


def with_env(job: TrainJob, env: tuple[tuple[str, str], ...]) -> TrainJob:
    """The job with these variables over its own."""
    if not env:
        return job
    given = dict(env)
    own = (one for one in job.trainer.env if one.get("name") not in given)
    trainer = replace(job.trainer, env=(*own, *variables(given)))
    return replace(job, spec=replace(job.spec, trainer=trainer))


def with_mounts(runtime: Runtime, mounts: tuple[HostMount, ...]) -> Runtime:
    """The runtime with these directories shown to the container that runs the job, in every pod."""
    if not mounts:
        return runtime
    jobs = [_shown(one, mounts) for one in runtime.spec.template.spec.get("replicatedJobs") or ()]
    template = replace(
        runtime.spec.template, spec={**runtime.spec.template.spec, "replicatedJobs": jobs}
    )
    return replace(runtime, spec=replace(runtime.spec, template=template))


def _shown(job: Any, mounts: tuple[HostMount, ...]) -> Any:
    copy = msgspec.json.decode(msgspec.json.encode(job))
    pod = copy["template"]["spec"]["template"]["spec"]
    pod["containers"].sort(key=lambda one: one["name"] != NODE_CONTAINER)
    add_mounts(pod, mounts)
    return copy
