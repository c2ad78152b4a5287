"""Where the nodes of a TrainJob without MPI meet: at the first of them, on one port."""

from __future__ import annotations

from typing import Any

from mpi_trainer.api.effective.combine import MEETING_PORT, TRAINER, Effective

PORT = MEETING_PORT
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
"""a node's number among the pods of its Job, which only the kubelet can fill in"""

Variable = dict[str, Any]


def address(effective: Effective) -> str:
    trainer = effective.job(TRAINER)
    job = "node" if trainer is None else trainer.name
    return f"{effective.name}-{job}-0-0.{effective.subdomain}"


def value(name: str, text: str) -> Variable:
    return {"name": name, "value": text}


def index(name: str) -> Variable:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
