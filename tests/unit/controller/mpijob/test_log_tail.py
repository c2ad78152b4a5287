"""Which attempts leave something, and what of it is whose fault (W-7, W-9)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.mpijob import MPIJobStatus
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob.log_tail import LogTails
from mpi_trainer.controller.mpijob.observe import owned_objects
from mpi_trainer.controller.pod_logs import PodLogs
from mpi_trainer.decide import history
from mpi_trainer.decide.history import Attempt, History, LogTail
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from mpi_trainer.decide.observed import Failure, Record
from mpi_trainer.runtime.partial import Key
from tests.unit.controller.objects import batch_job, ended, launcher, mpijob, worker

NOW = datetime(2026, 3, 1, 13, tzinfo=UTC)
SUMMARY = """mpi-agent 1
level full
ended RankDied 1
cause RankFailed 1 pi-worker-1
bad 1 pi-worker-1 status=1
host pi-worker-0 0 peak=- oom=-
host pi-worker-1 1 peak=- oom=-
"""
WAITS = "mpi-agent: waiting for 1 of 2 workers: pi-worker-0 (Connection refused)\n"
FAILED = Failure(1, "LauncherPodFailed", "Launcher pi-launcher ended with exit code 1", "x")


class Kubelet:
    def __init__(self, log: str = "the end") -> None:
        self.asked: list[str] = []
        self.log = log

    async def fetch(self, request: Any) -> bytes:
        self.asked.append(request.path.split("/")[-2])
        return self.log.encode()


def kept(
    decision: MPIJobDecision, *pods: Any, before: Record | None = None, known: History = ()
) -> tuple[History | None, list[str]]:
    kubelet: Any = Kubelet()
    job = mpijob()
    notes = {ATTEMPTS: history.to_json(known) or ""}
    job = replace(job, metadata=replace(job.metadata, annotations=notes))
    mine = owned_objects(job, pods, [batch_job()])
    tails = LogTails(PodLogs(kubelet), JobMemories())
    found = asyncio.run(tails.history(job, before or Record(), mine, decision, NOW))
    return found, kubelet.asked


def test_failure_keeps_the_launcher_s_words_and_whose_fault_it_was() -> None:
    decision = MPIJobDecision(MPIJobStatus(), Record(attempt=2, failures=(FAILED,), retry_at=NOW))
    found, asked = kept(
        decision, launcher("Failed", containerStatuses=ended(1, message=SUMMARY)), worker()
    )
    assert found is not None
    (one,) = found
    assert (one.rank, one.host) == (1, "pi-worker-1")
    assert one.words[0].text == "the end" and asked == [one.pod]


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        (f"{WAITS}mpi-agent| 7 pi 0 started 1\nno licence\n", "no licence"),
        (f"no licence\n{WAITS}", f"no licence | {WAITS.strip()}"),
        (WAITS, WAITS.strip()),
        ("", ""),
    ],
)
def test_what_the_agent_waited_for_is_told_where_nothing_came_of_it(log: str, shown: str) -> None:
    kubelet: Any = Kubelet(log)
    job, pod = mpijob(), launcher("Failed", containerStatuses=ended(7))
    mine = owned_objects(job, [pod], [batch_job()])
    tails = LogTails(PodLogs(kubelet), JobMemories())
    assert asyncio.run(tails.failed_launcher(job, Record(), mine)) == shown


def test_words_outlive_a_write_that_failed() -> None:
    """The pod may be gone when the record can be written at last."""
    kubelet: Any = Kubelet()
    memories, job = JobMemories(), mpijob()
    memories.begin(Key("lab", "pi"), job.metadata.uid)
    tails = LogTails(PodLogs(kubelet), memories)
    decision = MPIJobDecision(MPIJobStatus(), Record(attempt=2, failures=(FAILED,), retry_at=NOW))
    for pods in ([launcher("Failed", containerStatuses=ended(1))], []):
        mine = owned_objects(job, [*pods, worker()], [batch_job()])
        found = asyncio.run(tails.history(job, Record(), mine, decision, NOW))
        assert found is not None and found[0].words[0].text == "the end"
    assert len(kubelet.asked) == 1


def test_worker_that_failed_by_itself_is_heard_too() -> None:
    decision = MPIJobDecision(MPIJobStatus(), Record(attempt=2, failures=(FAILED,), retry_at=NOW))
    failed = (
        launcher("Failed", containerStatuses=ended(1)),
        worker(0, "Failed", containerStatuses=ended(9)),
    )
    found, asked = kept(decision, *failed, worker(1))
    assert found is not None and len(found[0].words) == len(asked) == 2


def test_look_that_ends_nothing_reads_and_writes_nothing() -> None:
    assert kept(MPIJobDecision(MPIJobStatus(), Record()), launcher(), worker()) == (None, [])


def test_job_that_never_had_a_pod_keeps_no_history() -> None:
    """Its condition says it all."""
    decision = MPIJobDecision(MPIJobStatus(), Record(failures=(FAILED,)))
    assert kept(decision) == (None, [])


@pytest.mark.parametrize("words", [(), (LogTail("a", "b"),)])
def test_success_takes_words_away_and_costs_nothing_without_them(words: Any) -> None:
    holds = MPIJobStatus(conditions=(Condition(type="Succeeded", status="True"),))
    known = (Attempt(1, "x", words=words),)
    before = Record(attempt=2)
    found, asked = kept(MPIJobDecision(holds, before), launcher(), before=before, known=known)
    assert found == ((Attempt(1, "x"),) if words else None) and asked == []
