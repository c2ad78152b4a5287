"""Which attempts of a TrainJob are heard (W-7): each once, however many pods are left of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import ATTEMPTS, LOG_TAIL
from mpi_trainer.api.kinds.labels import LABEL_REPLICATED_JOB, LABEL_RESTART_ATTEMPT
from mpi_trainer.api.kinds.pod_status import ContainerState, ContainerStatus, PodStatus, Terminated
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.controller.objects import ContainerName, Pod, PodSpec
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.controller.trainjob.log_tail import LogTails
from mpi_trainer.decide import history
from mpi_trainer.decide.history import History
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet
from mpi_trainer.decide.trainjob.status_annotations import StatusAnnotations
from mpi_trainer.runtime.partial import Meta
from tests.unit.decide.trainjob.test_decide import make_job, whole

T0 = datetime(2026, 1, 31, 12, tzinfo=UTC)
SUMMARY = "mpi-agent 2\nlevel full\nended command 1\nraised 0 w-0 a.py:3 Boom: my words\n"
UP = ObservedJobSet(uid="set")


class Kubelet:
    """Every pod says its name. All pods are the job's."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.pods: tuple[Pod, ...] = ()

    async def fetch(self, request: Any) -> bytes:
        self.asked.append(request.path)
        return f"words of {request.path}".encode()

    async def listed(self, job: TrainJob) -> tuple[Pod, ...]:
        return self.pods

    async def owned(self, job: TrainJob, uid: str, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
        return pods


def pod(number: int, role: str = "launcher", phase: str = "Failed", restarts: int = 0) -> Pod:
    state = ContainerState(terminated=Terminated(exit_code=3))
    return Pod(
        metadata=Meta(
            name=f"pi-{role}-0-0-{number:05}",
            namespace="ns",
            uid=str(number),
            labels={LABEL_REPLICATED_JOB: role, LABEL_RESTART_ATTEMPT: str(restarts)},
            creation_timestamp=T0 + timedelta(minutes=number),
        ),
        spec=PodSpec(node_name="n1", containers=(ContainerName("node"),)),
        status=PodStatus(phase=phase, container_statuses=(ContainerStatus("node", state=state),)),
    )


class Life:
    """A job, and what is kept of its attempts from look to look."""

    def __init__(self, torch: bool = False) -> None:
        self.kubelet = kubelet = Kubelet()
        self.log_tails = LogTails(PodLogs(kubelet), kubelet, kubelet)  # type: ignore[arg-type]
        self.job = make_job()
        self.whole = whole(self.job, torch)

    @property
    def kept(self) -> History:
        return history.read(self.job.metadata.annotations)

    def looked(self, minute: int, *pods: Pod, suspend: bool | None = None) -> bool:
        """Whether anything of it was new."""
        before = self.job.metadata.annotations.get(ATTEMPTS, "")
        self.kubelet.pods = pods
        step = TrainJobDecision(self.job.status, StatusAnnotations(), suspend=suspend)
        now = T0 + timedelta(minutes=minute)
        if suspend:
            stored = self.log_tails.history_at_end(self.job, self.whole, UP, step, now)
        else:
            stored = self.log_tails.history(self.job, self.whole, pods, step, now)
        text = asyncio.run(stored)
        annotations = {**self.job.metadata.annotations, ATTEMPTS: text}
        self.job = replace(self.job, metadata=replace(self.job.metadata, annotations=annotations))
        return text != before


def test_launchers_that_are_told_of_no_more_are_not_heard_anew() -> None:
    """A Job keeps its failed pods; beyond thirty-two the first would follow the last, for ever."""
    life = Life()
    pods = [pod(number) for number in range(40)]
    for number in range(40):
        assert life.looked(number + 1, *pods[: number + 1])
    assert len(life.kept) == history.MOST
    asked = len(life.kubelet.asked)
    assert not life.looked(50, *pods)
    assert len(life.kubelet.asked) == asked == 40


def test_failure_after_a_suspension_is_heard() -> None:
    """JobSet does not count a resumption as a restart."""
    life = Life(torch=True)
    life.looked(2, pod(1, "node", "Running"), suspend=True)
    assert [one.reason for one in life.kept] == [history.SUSPENDED]
    life.looked(5, pod(4, "node"))
    assert [one.attempt for one in life.kept] == [1, 2]
    assert "00004" in life.kept[-1].words[0].text
    assert not life.looked(6, pod(4, "node"))
    life.looked(8, pod(7, "node", restarts=1))
    assert [one.attempt for one in life.kept] == [1, 2, 3]


def test_pods_of_before_a_suspension_are_no_attempt_of_after_it() -> None:
    life = Life(torch=True)
    old = pod(0, "node")
    life.looked(1, old)
    life.looked(3, old, pod(2, "node", "Running"), suspend=True)
    kept = life.kept
    assert not life.looked(5, old)
    assert life.kept == kept


def test_suspension_that_is_carried_out_at_the_second_look_is_one_attempt() -> None:
    """The record is stored first; whoever dies before the JobSet is told repeats the look."""
    life = Life(torch=True)
    pods = [pod(number, "node", "Running") for number in range(5)]
    assert life.looked(6, *pods, suspend=True)
    assert not life.looked(7, *pods, suspend=True)
    assert [one.attempt for one in life.kept] == [1]


@pytest.mark.parametrize("torch", [False, True])
def test_where_log_tails_are_off_no_word_of_a_program_is_kept(torch: bool) -> None:
    life, role = Life(torch), "node" if torch else "launcher"
    notes = {**life.job.metadata.annotations, LOG_TAIL: "off"}
    life.job = replace(life.job, metadata=replace(life.job.metadata, annotations=notes))
    for number, said in enumerate((SUMMARY, "Boom: my words")):
        one = pod(number, role, restarts=number)
        state = ContainerState(terminated=Terminated(exit_code=3, message=said))
        status = replace(one.status, container_statuses=(ContainerStatus("node", state=state),))
        life.looked(number + 1, *life.log_tails.shown(life.job, [replace(one, status=status)]))
    assert len(life.kept) == 2 and life.kubelet.asked == []
    assert "words" not in life.job.metadata.annotations[ATTEMPTS]
    if not torch:
        assert "raised an exception" in life.kept[0].message
