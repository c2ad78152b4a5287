"""How much of the agent a job gets, and why; within which bounds it calls something a failure.

`full`: the agent runs the launcher's command, watches every host and every rank. `environment`:
SSH and variables only, because the launcher's program is its image's own and cannot be stood in
front of, or because workers run a program of their own. `off`: nothing of ours but a wait for
names. SSH is `managed` (any user, strict keys, workers without the private key) or `compatible`
(upstream's keys and worker command, for images made for it).

Whatever the level, a launcher's command that is known starts only when DNS knows all hosts (U-1,
U-6): an mpirun that is too early fails, and costs an attempt. A job that asks for a wait of 0
seconds has no such wait, and with `off` upstream's exact pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import AGENT, BOUNDS, SSH, bound, seconds
from mpi_trainer.api.kinds.pods import Container, PodTemplate

Level = Literal["full", "environment", "off"]
Ssh = Literal["managed", "compatible"]


class Choice(msgspec.Struct, frozen=True):
    """`names`: the launcher's command waits for the hosts' names, which at full level is the least
    that the agent waits for."""

    level: Level
    ssh: Ssh
    why: str = ""
    names: bool = False

    @property
    def managed(self) -> bool:
        return self.ssh == "managed"

    @property
    def uses_scripts(self) -> bool:
        return self.managed or self.names


def choice(
    annotations: Mapping[str, str], launcher: PodTemplate, worker: PodTemplate, main: str = ""
) -> Choice:
    """What the job's annotations ask for, as far as its pods allow it; `main` is their container
    that runs the job."""
    chosen = _chosen(annotations, launcher, worker, main)
    known = bool(container(launcher.view.spec.containers, main).command)
    waits = chosen.level != "full" and known and settings(annotations).wait > 0
    return replace(chosen, names=waits)


def _chosen(
    annotations: Mapping[str, str], launcher: PodTemplate, worker: PodTemplate, main: str
) -> Choice:
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


class AgentSettings(msgspec.Struct, frozen=True):
    """One field for each of `BOUNDS`: a job changes one with the annotation
    `mpi-trainer.opendatahub.io/<name>-seconds`; 0 means never, but for `wait`. What each bounds
    stands in `verdict.sh`. A value that is no number is not taken."""

    wait: int = 110
    lost: int = 20
    dead: int = 10
    stuck: int = 10
    start: int = 100
    suspect: int = 300

    def text(self) -> str:
        """Assignments for a shell."""
        return "".join(f"{name}_seconds={getattr(self, name)}\n" for name in BOUNDS)


def settings(annotations: Mapping[str, str]) -> AgentSettings:
    given = {name: seconds(annotations.get(bound(name), "")) for name in BOUNDS}
    return AgentSettings(**{name: value for name, value in given.items() if value is not None})
