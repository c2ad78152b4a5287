"""What the REST API answers about what a new job can choose from, as types.

`values.py` says what holds for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mpi_trainer.server.values import Value


class Runtime(Value, frozen=True):
    """What TrainJobs can name; `numNodes` holds where a job says none."""

    name: str
    kind: str
    namespace: str
    framework: str
    num_nodes: int
    manifest: Mapping[str, Any]


class Lint(Value, frozen=True):
    """What reading a runtime shows: an error would fail where a job runs."""

    severity: Literal["error", "warning"]
    field: str
    message: str
    remedy: str


class RuntimeDetails(Runtime, frozen=True):
    """`usedBy` are TrainJobs of this namespace that name it; `notes` say what is not known."""

    used_by: tuple[str, ...]
    lint: tuple[Lint, ...]
    notes: tuple[str, ...]


class RuntimeList(Value, frozen=True):
    items: tuple[Runtime, ...]


class Quota(Value, frozen=True):
    """A limit of a ResourceQuota, such as of `requests.nvidia.com/gpu`, and what is used of it."""

    name: str
    resource: str
    hard: str
    used: str


class QuotaList(Value, frozen=True):
    items: tuple[Quota, ...]


class QueueResource(Value, frozen=True):
    """What a ClusterQueue has of a resource in one flavor, and what admitted jobs hold of it."""

    flavor: str
    resource: str
    nominal: str
    used: str


class WaitingJob(Value, frozen=True):
    """A job's place in its queue, and among all jobs of the ClusterQueue, counted from 1."""

    kind: str
    name: str
    position: int
    cluster_position: int
    priority: int


class Queue(Value, frozen=True):
    """A queue that jobs of its namespace may name; `pending` and `admitted` count its jobs. The
    last three are null where you may not read them, or the cluster does not say them."""

    namespace: str
    name: str
    cluster_queue: str
    pending: int
    admitted: int
    resources: tuple[QueueResource, ...] | None
    cluster_pending: int | None
    waiting: tuple[WaitingJob, ...] | None


class QueueList(Value, frozen=True):
    items: tuple[Queue, ...]
