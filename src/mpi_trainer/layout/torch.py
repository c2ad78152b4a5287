"""The variables by which torchrun finds the other nodes of a TrainJob. Upstream's to the letter.

They stand in the trainer's container, whether or not the job sets anything for it (upstream leaves
them out where it does not), and in the containers that the runtime names. A node's rank is its
index among the pods of its Job, which only the kubelet can fill in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpi_trainer.api.effective import AUTO, TRAINER, Effective
from mpi_trainer.api.runtime import Runtime
from mpi_trainer.api.tailoring import NODE_CONTAINER

MASTER_PORT = 29500
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

Variable = dict[str, Any]


def variables(effective: Effective) -> tuple[Variable, ...]:
    trainer = effective.job(TRAINER)
    job = "node" if trainer is None else trainer.name
    processes = "auto" if effective.slots == AUTO else str(effective.slots)
    master = f"{effective.name}-{job}-0-0.{effective.subdomain}"
    return (
        {"name": "PET_NNODES", "value": str(effective.nodes)},
        {"name": "PET_NPROC_PER_NODE", "value": processes},
        {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}},
        {"name": "PET_MASTER_ADDR", "value": master},
        {"name": "PET_MASTER_PORT", "value": str(MASTER_PORT)},
    )


def targets(effective: Effective, runtime: Runtime) -> Iterator[tuple[str, str]]:
    """Replicated job and container of each place that gets them."""
    trainer = effective.job(TRAINER)
    if trainer is not None:
        yield trainer.name, NODE_CONTAINER
    policy = runtime.spec.ml_policy.torch if runtime.spec.ml_policy else None
    for target in policy.env_injection.targets if policy and policy.env_injection else ():
        for container in target.container_names:
            yield target.job_name, container
