"""A Layout: everything that must exist for a job to run, as one frozen value.

Both executors read it: the controller renders it to Kubernetes objects, the local backend to
processes in namespaces. It holds no secret: keys are named by where they go, not by content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from mpi_trainer.api.kinds.pods import PodTemplate

Pairs = tuple[tuple[str, str], ...]
Part = Literal["private", "public", "host-private", "host-public"]


class Host(msgspec.Struct, frozen=True):
    """A place for ranks: the pod, the name under which MPI reaches it, and its slots."""

    pod: str
    address: str
    slots: int


class File(msgspec.Struct, frozen=True):
    """`shared`: the same in every job of this version, so that jobs need not carry it each."""

    path: str
    mode: int
    text: str
    shared: bool = False


class KeyFile(msgspec.Struct, frozen=True):
    """A part of the job's two key pairs, at a path. `mode` None leaves it to whoever mounts it.

    One pair opens the workers, the other proves that a worker is the job's own.
    """

    path: str
    part: Part
    mode: int | None


class Overlay(msgspec.Struct, frozen=True):
    """A file made by `prepare`, shown at another path to the pod's own program."""

    source: str
    target: str


class PodLayout(msgspec.Struct, frozen=True):
    """One pod. `env` and `labels` are what we add, and win over the template's own.

    `container` runs the job; "" is the first one. `command` is its command and args in one; they
    stay apart in the template.
    `scratch` are folders that only this pod's programs may write to. `prepare` is a command that
    ends before `command` starts, in the same image, as the same user, with the same files.
    `ready_port` is a port that answers once the pod is ready; 0 where only its owner can know.
    `quiet_mark` is a file that is there while its program seems to be stuck; "" where nobody can
    know.
    """

    name: str
    role: Literal["launcher", "worker"]
    index: int
    hostname: str
    subdomain: str
    labels: Mapping[str, str]
    env: Pairs
    command: tuple[str, ...]
    files: tuple[File, ...]
    keys: tuple[KeyFile, ...]
    template: PodTemplate
    scratch: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    overlays: tuple[Overlay, ...] = ()
    ready_port: int = 0
    quiet_mark: str = ""
    container: str = ""


class Layout(msgspec.Struct, frozen=True):
    """A job. `agent` and `ssh` say how much of the agent it gets, `agent_why` why not all of it."""

    name: str
    namespace: str
    implementation: str
    slots: int
    hosts: tuple[Host, ...]
    hostfile: str
    launcher: PodLayout
    workers: tuple[PodLayout, ...]
    agent: Literal["full", "environment", "off"] = "off"
    ssh: Literal["managed", "compatible"] = "compatible"
    agent_why: str = ""

    @property
    def pods(self) -> tuple[PodLayout, ...]:
        return (self.launcher, *self.workers)

    @property
    def ranks(self) -> int:
        """How many ranks fill every slot."""
        return sum(h.slots for h in self.hosts)
