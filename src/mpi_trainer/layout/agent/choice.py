"""How much of the agent a job gets, and why.

`full`: the agent runs the launcher's command, watches every host and every rank. `environment`:
SSH and variables only, because the launcher's program is its image's own and cannot be stood in
front of, or because workers run a program of their own. `off`: nothing of ours, upstream's exact
pods. SSH is `managed` (any user, strict keys, workers without the private key) or `compatible`
(upstream's keys and worker command, for images made for it).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from mpi_trainer.api.mpijob import MPIJob
from mpi_trainer.api.pods import Container

DOMAIN = "mpi-trainer.opendatahub.io"
AGENT = f"{DOMAIN}/agent"
SSH = f"{DOMAIN}/ssh"

Level = Literal["full", "environment", "off"]
Ssh = Literal["managed", "compatible"]


class Choice(msgspec.Struct, frozen=True):
    level: Level
    ssh: Ssh
    why: str = ""

    @property
    def managed(self) -> bool:
        return self.ssh == "managed"


def choice(job: MPIJob) -> Choice:
    """What the job's annotations ask for, as far as its pods allow it."""
    asked = job.metadata.annotations.get(AGENT, "")
    if asked == "off":
        return Choice("off", "compatible", f"the annotation {AGENT} says so")
    ssh = job.metadata.annotations.get(SSH, "")
    if ssh == "compatible":
        return Choice("environment", "compatible", f"the annotation {SSH} says so")
    if ssh != "managed" and _runs_something(job):
        return Choice("environment", "compatible", "workers have a command of their own")
    if asked == "environment":
        return Choice("environment", "managed", f"the annotation {AGENT} says so")
    if not container(job.launcher.template.view.spec.containers).command:
        why = "the launcher names no command, and its image's own cannot be known"
        return Choice("environment", "managed", why)
    return Choice("full", "managed")


def container(containers: tuple[Container, ...]) -> Container:
    """The one that runs the job; the others are its user's own business."""
    return containers[0] if containers else Container()


def _runs_something(job: MPIJob) -> bool:
    worker = container(job.worker.template.view.spec.containers)
    return bool(worker.command or worker.args)
