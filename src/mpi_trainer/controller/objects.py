"""Pods and jobs of both kinds as the loops read them: partial, frozen, small.

A job's spec and status are kept as the bytes that came: whatever a user managed to store must not
keep the others' jobs from being read. `decoded_jobs` makes sense of them, one job at a time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from mpi_trainer.runtime.partial import Meta, Partial

_NOTHING = msgspec.Raw(b"{}")
POD_SECONDS: Final = 0.1
"""how late changes of pods may come where many pods change"""


class Waiting(Partial, frozen=True, gc=False):
    reason: str = ""
    message: str = ""


class Running(Partial, frozen=True, gc=False):
    started_at: datetime | None = None


class Terminated(Partial, frozen=True, gc=False):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Partial, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Partial, frozen=True, gc=False):
    name: str = ""
    ready: bool = False
    state: ContainerState = ContainerState()


class PodCondition(Partial, frozen=True, gc=False):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class ContainerName(Partial, frozen=True, gc=False):
    name: str = ""


class PodSpec(Partial, frozen=True, gc=False):
    node_name: str = ""
    hostname: str = ""
    containers: tuple[ContainerName, ...] = ()


class PodStatus(Partial, frozen=True, gc=False):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Partial, frozen=True, gc=False):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class StoredJob(Partial, frozen=True, gc=False):
    """A job as it is stored, not decoded yet; `stored_job` says what is kept of it.

    `finished`: it has ended, for sure, and most of its spec is left out. So it is where the spec
    is too large; `spec_size` is what it was.
    """

    metadata: Meta = Meta()
    spec: msgspec.Raw = _NOTHING
    status: msgspec.Raw = _NOTHING
    finished: bool = False
    spec_size: int = 0


class Answer(Partial, frozen=True, gc=False):
    """What a write returns, as far as we care."""

    kind: str = ""
    metadata: Meta = Meta()
