"""Where the nodes of a TrainJob without MPI meet: at the first of them, on one port."""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.effective.combine import MEETING_PORT, NODE, TRAINER, Effective
from mpi_trainer.layout.hosts import host_name

PORT = MEETING_PORT
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
"""a node's number among the pods of its Job, which only the kubelet can fill in"""

Variable = dict[str, Any]


def address(effective: Effective) -> str:
    trainer = effective.job(TRAINER)
    job = NODE if trainer is None else trainer.name
    return f"{host_name(effective.name, job)}.{effective.subdomain}"


def value(name: str, text: str) -> Variable:
    return {"name": name, "value": text}


def index(name: str) -> Variable:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
