"""What a backend knows of a job, as the diagnosis takes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.decide.history import Attempt
from mpi_trainer.diagnose import cause
from mpi_trainer.diagnose.finding import Confidence, Finding
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.sdk.backends.backend import (
    EventInfo,
    JobDetails,
    JobView,
    Key,
    LogLine,
    LogQuery,
    PodInfo,
    RankInfo,
)
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.job.explain import explained, job_facts, kept_findings

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def job(state: str, reason: str = "", message: str = "") -> JobView:
    said = Condition(type=state, status="True", reason=reason, message=message)
    return mpijob_view(MPIJob(metadata=ObjectMeta(name="a"), status=MPIJobStatus((said,))), {})


def pod(name: str, code: int | None = None, signal: int | None = None, reason: str = "") -> PodInfo:
    role: Literal["launcher", "worker"] = "launcher" if name.endswith("launcher") else "worker"
    values = {"exit_code": code, "signal": signal, "reason": reason}
    return PodInfo(name, role, 0, "Failed", ready=False, **values)  # type: ignore[arg-type]


def rank(
    number: int, code: int | None = None, signal: int | None = None, reason: str = ""
) -> RankInfo:
    return RankInfo(number, f"a-worker-{number}", "10.0.0.1", 7, "", code, signal, reason)


def found(details: JobDetails, *lines: str) -> list[tuple[str, tuple[int, ...]]]:
    facts = job_facts(details)
    return [(f.cause, f.ranks) for f in cause.findings(LogReader(facts.hosts).read(lines), facts)]


def test_a_rank_that_was_killed_for_memory_is_proved() -> None:
    ranks = (rank(0, signal=15), rank(1, signal=9, reason="OOMKilled"), rank(2))
    details = JobDetails(job("Failed"), (pod("a-launcher", 137),), ranks)
    assert found(details) == [("OutOfMemory", (1,))]


def test_the_rank_that_the_attempt_blames_is_the_first() -> None:
    ranks = (rank(0, 3), rank(1, 3), rank(2, 0))
    details = JobDetails(job("Failed"), (), ranks, attempts=(Attempt(1, rank=1),))
    assert found(details) == [("RankExitedNonZero", (1, 0))]


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("RankStuck", "Rank 1 on a-worker-1 waits", ("NoProgress", (1,))),
        ("DaemonLost", "the daemon on a-worker-1 is gone", ("WorkerLost", ())),
        ("DeadlineExceeded", "active for longer than 60 s", ("TimeLimit", ())),
        ("WorldsOfOne", "every rank was alone", ("MpiLibraryMismatch", ())),
    ],
)
def test_what_the_status_says_is_taken_as_proof(
    reason: str, message: str, expected: tuple[str, tuple[int, ...]]
) -> None:
    assert found(JobDetails(job("Failed", reason, message))) == [expected]


def test_a_programs_own_words_beat_what_the_agent_saw_of_it() -> None:
    details = JobDetails(job("Failed", "RankStuck", "Rank 1 on a-worker-1 waits"))
    lines = ("Traceback (most recent call last):", "ValueError: bad batch")
    assert found(details, *lines)[0][0] == "ProgramException"


def test_pods_and_events_are_read() -> None:
    gone = JobDetails(job("Failed"), (pod("a-worker-1", reason="Evicted"),))
    assert found(gone)[0][0] == "Evicted"
    full = EventInfo(NOW, "Warning", "FailedCreate", "exceeded quota: q, requested: cpu=4")
    assert found(JobDetails(job("Failed"), events=(full,)))[0][0] == "QuotaExceeded"


def test_the_end_of_mpirun_is_the_launchers() -> None:
    killed = job_facts(JobDetails(job("Failed"), (pod("a-launcher", signal=9),)))
    assert (killed.signal, killed.exit_code, killed.ended) == (9, None, True)
    assert job_facts(JobDetails(job("Succeeded"))).exit_code == 0
    assert not job_facts(JobDetails(job("Running"))).ended


def test_the_status_names_rank_and_host_where_nothing_else_does() -> None:
    """Hydra may lose the line of the rank that called MPI_Abort."""
    said = "Launcher a-launcher ended with exit code 3: rank 1 on a-worker-1 {}"
    aborted = JobDetails(job("Failed", "LauncherPodFailed", said.format("was the first to fail")))
    facts = job_facts(aborted)
    (finding,) = cause.findings(LogReader().read(["rank 1 epoch 2"]), facts)
    assert (finding.ranks, finding.hosts) == ((1,), ("a-worker-1",))


class Backend:
    """Knows one job, and what it printed last."""

    def __init__(self, state: str, *kept: Finding, printed: str = "") -> None:
        attempts = (Attempt(1, findings=kept),)
        self.known = JobDetails(job(state), attempts=attempts)
        self.printed = printed
        self.read = False

    async def details(self, key: Key) -> JobDetails:
        return self.known

    async def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        self.read = True
        for text in self.printed.splitlines():
            yield LogLine(NOW, "a-launcher", "stdout", 1, text)


def finding(cause: str, confidence: Confidence) -> Finding:
    return Finding(cause, confidence, "title", "remedy")


def explain(backend: Backend) -> list[str]:
    place: Any = backend
    return [one.cause for one in asyncio.run(explained(place, Key("default", "a")))]


RAISED = "Traceback (most recent call last):\nValueError: bad batch\n"


def test_what_was_found_when_the_job_failed_is_not_looked_for_again() -> None:
    backend = Backend("Failed", finding("OutOfMemory", "certain"), printed=RAISED)
    assert explain(backend) == ["OutOfMemory"]
    assert not backend.read


def test_where_only_a_guess_was_kept_the_whole_output_is_read() -> None:
    guess = finding("UnknownFailure", "possible")
    assert explain(Backend("Failed", guess, printed=RAISED)) == ["ProgramException"]
    assert explain(Backend("Failed", guess, printed="epoch 1")) == ["UnknownFailure"]


def test_of_an_older_job_that_kept_nothing_the_output_is_read() -> None:
    assert explain(Backend("Failed", printed=RAISED)) == ["ProgramException"]


def test_findings_of_an_earlier_attempt_are_not_those_of_a_job_that_runs() -> None:
    backend = Backend("Running", finding("OutOfMemory", "certain"))
    assert kept_findings(backend.known) == () and explain(backend) == []
