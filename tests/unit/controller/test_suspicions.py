"""When the controller reads a running launcher's log, and what it does where it cannot."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import ATTEMPT, bound
from mpi_trainer.api.kinds.pod_status import (
    Condition,
    ContainerState,
    ContainerStatus,
    PodStatus,
    Running,
)
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob.observe import OwnedObjects
from mpi_trainer.controller.mpijob.suspicions import Suspicions, may_be_stuck
from mpi_trainer.controller.objects import Pod
from mpi_trainer.controller.pod_logs import UnreadableLog
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.runtime.partial import Key, Meta
from tests.unit.decide.mpijob.jobs import T0, running_job, stored

LATER = T0 + timedelta(seconds=300)
AGENT = "mpi-agent| 1794762138 pi-launcher"
STUCK = (
    f"{AGENT} quiet form=1 seconds=372 ranks=2 groups=1\n"
    f"{AGENT} place ranks=0-1 on=a,b idle=1 same=0 ending=0 mpi=1 frames= calls=\n"
)
TEXT = "no output and no progress for 6m12s: ranks 0-1 use no CPU"


def launcher(ready: str = "False", phase: str = "Running", began: datetime = T0) -> Pod:
    main = ContainerStatus(name="m", state=ContainerState(running=Running(started_at=began)))
    status = PodStatus(
        phase=phase, conditions=(Condition("Ready", ready),), container_statuses=(main,)
    )
    return Pod(metadata=Meta(uid="l", annotations={ATTEMPT: "1"}), status=status)


class Logs:
    """What is read, each time; an error where that is None."""

    def __init__(self, *said: str | None) -> None:
        self.said = list(said)

    async def end(self, pod: Pod, main: str = "") -> str:
        found = self.said.pop(0)
        if found is None:
            raise UnreadableLog("no answer")
        return found


@pytest.mark.parametrize(
    ("pod", "now", "expected"),
    [
        (launcher(), LATER, True),
        (launcher("True"), LATER, False),
        (launcher(), LATER - timedelta(seconds=1), False),
        (launcher(phase="Failed"), LATER, False),
    ],
    ids=["not ready", "ready", "just begun", "ended"],
)
def test_a_launcher_may_be_stuck(pod: Pod, now: datetime, expected: bool) -> None:
    assert may_be_stuck(running_job()[0], pod, now) is expected


def test_a_job_that_asks_for_no_look_has_none() -> None:
    job, _ = running_job()
    never = replace(job.metadata, annotations={bound("suspect"): "0"})
    assert not may_be_stuck(replace(job, metadata=never), launcher(), LATER)


def test_a_log_is_read_once_and_again_when_it_could_not_be() -> None:
    job, seen = running_job()
    job = replace(job, metadata=replace(job.metadata, uid="u"))
    memories, logs = JobMemories(), Logs(None, STUCK, None, STUCK)
    memories.begin(Key("lab", "pi"), "u")
    reads: Any = logs
    suspicions = Suspicions(reads, memories)

    def text(pod: Pod) -> str:
        owned = OwnedObjects(launchers=(pod,))
        return asyncio.run(suspicions.text(job, seen.record, owned, LATER))

    assert text(launcher()) == "", "nothing was found before"
    assert [text(launcher()), text(launcher())] == [TEXT, TEXT]
    assert len(logs.said) == 2, "read once"
    assert text(launcher("True")) == ""
    job = stored(job, decide(job, replace(seen, suspicion=TEXT), LATER))
    assert text(launcher()) == TEXT, "what was found before stays"
    assert text(launcher()) == TEXT and not logs.said
