"""The variables of a policy, and the port where nodes meet, in the pods of a TrainJob.

The variables stand in the trainer's container, whether or not the job sets anything for it
(upstream leaves them out where it does not), and in the containers that a torch runtime names.
torchtune has the address among its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mpi_trainer.api.effective import torchtune
from mpi_trainer.api.effective.combine import TRAINER, Effective
from mpi_trainer.api.effective.overrides import NODE_CONTAINER
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.layout import policies
from mpi_trainer.layout.policies import torch
from mpi_trainer.layout.policies.first_node import PORT
from mpi_trainer.render.containers import changed, merged
from mpi_trainer.render.frame import Object


def with_variables(
    pods: Mapping[str, Object], job: TrainJob, effective: Effective, runtime: Runtime
) -> dict[str, Object]:
    """The pod templates `pods`, by the names of their replicated jobs, with what they need."""
    given, ours = dict(pods), policies.variables(job, effective)
    if not ours:
        return given

    tuned = tuple(one for one in ours if one["name"] not in torch.MASTER)
    for name, container in _targets(effective, runtime):
        bare = container == NODE_CONTAINER and torchtune.is_used(job)

        def with_environment(
            one: Object, variables: tuple[Object, ...] = tuned if bare else ours
        ) -> Object:
            return {**one, "env": merged(one.get("env"), variables)}

        if name in given:
            given[name] = changed(given[name], container, with_environment)
    trainer = effective.job(TRAINER)
    if trainer is not None:
        given[trainer.name] = changed(given[trainer.name], NODE_CONTAINER, _open)
    return given


def _targets(effective: Effective, runtime: Runtime) -> Iterator[tuple[str, str]]:
    """Replicated job and container of each place that gets the variables."""
    trainer = effective.job(TRAINER)
    if trainer is not None:
        yield trainer.name, NODE_CONTAINER
    policy = runtime.spec.ml_policy.torch if runtime.spec.ml_policy else None
    for target in policy.env_injection.targets if policy and policy.env_injection else ():
        for container in target.container_names:
            yield target.job_name, container


def _open(container: Object) -> Object:
    """With the port where nodes meet."""
    ports: list[Object] = container.get("ports") or []
    if any(port.get("containerPort") == PORT for port in ports):
        return container
    return {**container, "ports": [*ports, {"containerPort": PORT, "protocol": "TCP"}]}
