"""How much of the agent a job gets, and why.

`full`: the agent runs the launcher's command, watches every host and every rank. `environment`:
SSH and variables only, because the launcher's program is its image's own and cannot be stood in
front of, or because workers run a program of their own. `off`: nothing of ours, upstream's exact
pods. SSH is `managed` (any user, strict keys, workers without the private key) or `compatible`
(upstream's keys and worker command, for images made for it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from mpi_trainer.api.annotations import AGENT, SSH
from mpi_trainer.api.pods import Container, PodTemplate

Level = Literal["full", "environment", "off"]
Ssh = Literal["managed", "compatible"]


class Choice(msgspec.Struct, frozen=True):
    level: Level
    ssh: Ssh
    why: str = ""

    @property
    def managed(self) -> bool:
        return self.ssh == "managed"


def choice(
    annotations: Mapping[str, str], launcher: PodTemplate, worker: PodTemplate, main: str = ""
) -> Choice:
    """What the job's annotations ask for, as far as its pods allow it; `main` is their container
    that runs the job."""
    asked = annotations.get(AGENT, "")
    if asked == "off":
        return Choice("off", "compatible", f"the annotation {AGENT} says so")
    ssh = annotations.get(SSH, "")
    if ssh == "compatible":
        return Choice("environment", "compatible", f"the annotation {SSH} says so")
    if ssh != "managed" and _runs_something(worker, main):
        return Choice("environment", "compatible", "workers have a command of their own")
    if asked == "environment":
        return Choice("environment", "managed", f"the annotation {AGENT} says so")
    if not container(launcher.view.spec.containers, main).command:
        why = "the launcher names no command, and its image's own cannot be known"
        return Choice("environment", "managed", why)
    return Choice("full", "managed")


def container(containers: tuple[Container, ...], name: str = "") -> Container:
    """The one that runs the job: that of the name, else the first. The others are its user's own
    business."""
    named = (one for one in containers if name and one.name == name)
    return next(named, containers[0] if containers else Container())


def _runs_something(worker: PodTemplate, main: str) -> bool:
    found = container(worker.view.spec.containers, main)
    return bool(found.command or found.args)
