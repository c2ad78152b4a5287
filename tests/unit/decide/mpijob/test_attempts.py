"""Attempts: what ends one, what is recorded, what the next one starts with (CTL-11, AC-14)."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob import waiting
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import End, Failure, ObservedPod, ObservedRank, Record
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    event_reasons,
    failed_once,
    launcher,
    observe,
    record_of,
    replace,
    running_job,
    stored,
    truth,
    with_workers,
    worker,
)


@pytest.mark.parametrize(
    ("pods", "reason", "blamed"),
    [
        ([launcher("Failed"), worker(0), worker(1)], reasons.LAUNCHER_FAILED, "pi-launcher"),
        ([launcher(), worker(0), worker(1, "Failed")], reasons.WORKER_FAILED, "pi-worker-1"),
        ([launcher("Failed"), worker(0, "Failed")], reasons.WORKER_FAILED, "pi-worker-0"),
        ([worker(0), worker(1, "Failed")], reasons.WORKER_FAILED, "pi-worker-1"),
        (
            [launcher(), worker(0, "Failed", end=End(reason="Evicted")), worker(1)],
            reasons.EVICTED,
            "pi-worker-0",
        ),
        ([worker(0, "Succeeded"), worker(1)], reasons.WORKER_FAILED, "pi-worker-0"),
        ([launcher("Pending"), worker(0, "Succeeded")], reasons.WORKER_FAILED, "pi-worker-0"),
        ([launcher(terminating=True), worker(0)], reasons.LAUNCHER_FAILED, "pi-launcher"),
        ([worker(0), worker(1)], reasons.LAUNCHER_FAILED, "pi-launcher"),
    ],
    ids=[
        "launcher failed",
        "worker failed",
        "worker before launcher",
        "worker failed before the launcher came",
        "worker evicted",
        "worker exited before the launcher came",
        "worker exited before the launcher ran",
        "launcher deleted",
        "launcher gone without a trace",
    ],
)
def test_a_failure_ends_the_attempt_and_names_the_pod(
    pods: list[ObservedPod], reason: str, blamed: str
) -> None:
    job, _ = running_job()
    decision = decide(job, observe(*pods), at(5))
    (failure,) = decision.record.failures
    assert (failure.attempt, failure.reason, failure.pod) == (1, reason, blamed)
    assert decision.record.attempt == 2
    assert reason in event_reasons(decision)


@pytest.mark.parametrize(
    "pods",
    [
        [launcher(), worker(0), worker(1)],
        [launcher(), worker(0), worker(1, "Succeeded")],
        [launcher("Pending"), worker(0), worker(1, terminating=True)],
        [launcher(), worker(0), worker(1), worker(2, "Failed")],
        [launcher(workers=1), worker(0)],
    ],
    ids=["all well", "worker exited", "deleted in time", "worker beyond replicas", "job grew"],
)
def test_an_attempt_goes_on_without_a_failure(pods: list[ObservedPod]) -> None:
    job, _ = running_job()
    assert decide(job, observe(*pods), at(5)).record == Record()


@pytest.mark.parametrize(
    ("pods", "reason", "words"),
    [
        ([launcher(), worker(0, terminating=True), worker(1)], "WorkerPodFailed", "was deleted"),
        (
            [launcher(), worker(0, terminating=True, disrupted=True, why="node lost"), worker(1)],
            "MPIJobEvicted",
            "was deleted while the launcher ran: node lost",
        ),
        ([launcher(workers=2), worker(1)], "WorkerPodFailed", "was running and is gone"),
    ],
    ids=["deleted", "taken by the cluster", "gone unseen"],
)
def test_a_worker_taken_from_under_its_ranks_ends_the_attempt(
    pods: list[ObservedPod], reason: str, words: str
) -> None:
    """CTL-11: mpirun may wait for its ranks for ever."""
    job, _ = running_job()
    decision = decide(job, observe(*pods), at(5))
    (failure,) = decision.record.failures
    assert (failure.reason, failure.pod) == (reason, "pi-worker-0")
    assert words in failure.message


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({}, "LauncherPodFailed", "was deleted while it ran"),
        (
            {"disrupted": True, "why": "Eviction API: evicting"},
            "MPIJobEvicted",
            "was deleted while it ran: Eviction API: evicting",
        ),
    ],
    ids=["deleted", "node drained"],
)
def test_a_launcher_that_is_taken_away_says_who_took_it(
    changes: dict[str, Any], reason: str, words: str
) -> None:
    """W-8."""
    job, _ = running_job()
    pods = (launcher(terminating=True, **changes), worker(0), worker(1))
    (failure,) = decide(job, observe(*pods), at(5)).record.failures
    assert (failure.reason, failure.pod) == (reason, launcher().name)
    assert failure.message.endswith(words)


def test_launcher_failure_tells_its_exit_code() -> None:
    """AC-15."""
    job, _ = running_job(backoff_limit=0)
    dead = launcher("Failed", end=End(code=137, reason="OOMKilled", message="rank 3 was killed"))
    decision = decide(job, observe(dead, worker(0), worker(1)), at(5))
    text = condition(decision.status, c.FAILED).message
    assert text == ("Launcher pi-launcher ended with exit code 137 (OOMKilled): rank 3 was killed")
    assert event_reasons(decision) == [reasons.LAUNCHER_FAILED]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End(code=1), "exit code 1"),
        (End(signal=11), "signal 11 (SIGSEGV)"),
        (End(signal=9, reason="OOMKilled"), "signal 9 (OOMKilled)"),
        (End(signal=99), "signal 99 (unknown signal)"),
        (End(), "unknown end"),
        (End(reason="Evicted"), "unknown end (Evicted)"),
    ],
)
def test_an_end_is_told_in_words(end: End, words: str) -> None:
    assert end.text() == words


def test_failure_is_recorded_before_anything_is_stopped_or_started() -> None:
    job, _ = running_job()
    decision = decide(job, observe(launcher("Failed"), worker(0), worker(1)), at(5))
    assert not decision.acts
    assert decision.record.retry_at == at(6)
    assert decision.requeue_after is not None
    assert truth(decision.status)[c.RESTARTING] == c.TRUE
    assert truth(decision.status)[c.RUNNING] == c.FALSE
    assert event_reasons(decision) == [reasons.LAUNCHER_FAILED, reasons.RESTARTING]


def test_failures_between_attempts_are_not_counted() -> None:
    job, record = failed_once()
    observed = observe(launcher("Failed"), worker(0, "Failed"), worker(1), record=record)
    assert decide(job, observed, at(0.5)).record == record


def test_rest_is_kept_while_the_old_launcher_and_ended_workers_go() -> None:
    job, record = failed_once()
    observed = observe(launcher("Failed"), worker(0, "Failed"), worker(1), record=record)
    resting = decide(job, observed, at(0.25))
    assert resting.stop == ("pi-launcher", "pi-worker-0")
    assert resting.requeue_after is not None
    assert resting.requeue_after.total_seconds() == 0.75
    assert not resting.start_workers
    late = decide(job, observed, at(30))
    assert late.stop == resting.stop
    assert late.record == record


def test_nothing_starts_while_a_pod_is_on_its_way_out() -> None:
    job, record = failed_once()
    going = observe(launcher("Failed", terminating=True), worker(0), worker(1), record=record)
    decision = decide(job, going, at(30))
    assert not decision.acts
    assert decision.record == record
    assert decision.requeue_after == waiting.EVERY
    assert "being deleted" in condition(decision.status, c.RUNNING).message


def test_kept_workers_are_freed_before_the_next_launcher() -> None:
    job, record = failed_once()
    fresh = decide(job, observe(worker(1), record=record), at(2))
    assert fresh.record.retry_at is None
    assert fresh.start_workers == (0,)
    assert fresh.free == ("pi-worker-1",)
    assert not fresh.start_launcher
    freed = observe(worker(0, attempt=2), worker(1, attempt=2), record=fresh.record)
    assert decide(stored(job, fresh), freed, at(3)).start_launcher


def test_a_new_attempt_that_runs_is_no_longer_restarting() -> None:
    job, record = failed_once()
    begun = decide(job, observe(worker(1, attempt=2), record=record), at(2))
    pods = (launcher(attempt=2), worker(0, attempt=2), worker(1, attempt=2))
    again = decide(stored(job, begun), observe(*pods, record=begun.record), at(4))
    assert truth(again.status)[c.RUNNING] == c.TRUE
    assert truth(again.status)[c.RESTARTING] == c.FALSE
    assert event_reasons(again) == [reasons.RUNNING]


def test_restarting_says_which_retry_it_is_and_why() -> None:
    _, record = failed_once(backoff_limit=3)
    job, _ = failed_once(backoff_limit=3)
    text = "Launcher pi-launcher ended with exit code 1"
    assert condition(job.status, c.RESTARTING).message == (
        f"Attempt 1 failed (retry 1 of 3 follows): {text}"
    )
    begun = decide(job, observe(worker(0), worker(1), record=record), at(2))
    assert condition(begun.status, c.RESTARTING).message == (
        f"Attempt 1 failed (retry 1 of 3 has begun): {text}"
    )
    assert begun.events == ()


def test_status_lost_after_the_record_is_told_by_the_next_look() -> None:
    """CTL-3: a crash between the two costs no attempt, and no launcher reads as gone."""
    job, _ = running_job()
    _, record = failed_once()
    decision = decide(job, observe(worker(0), worker(1), record=record), at(30))
    assert decision.record == record
    assert not decision.acts
    assert truth(decision.status)[c.RESTARTING] == c.TRUE
    assert decide(stored(job, decision), observe(record=record), at(30)).start_workers == (0, 1)


def test_verdict_lost_from_the_status_is_told_again_whatever_became_of_the_pods() -> None:
    job, _ = running_job(backoff_limit=1, suspend=True)
    failures = (Failure(1, "X", "first", "pi-launcher"), Failure(2, "Y", "second", "pi-launcher"))
    record = record_of(*failures, attempt=2)
    decision = decide(job, observe(record=record), at(9))
    assert decision.record == record
    failed = condition(decision.status, c.FAILED)
    assert failed.reason == reasons.BACKOFF_LIMIT
    assert failed.message == "2 attempts failed; the last: second"


def test_launchers_of_other_attempts_are_stopped() -> None:
    job, _ = running_job()
    record = Record(attempt=2)
    pods = (launcher(attempt=2, name="new"), launcher(attempt=1, name="old"), worker(0), worker(1))
    assert decide(job, observe(*pods, record=record), at(1)).stop == ("old",)


def test_a_shrunk_job_stops_its_last_workers_once() -> None:
    """A worker that is both ended and beyond `replicas` is stopped once."""
    job, record = failed_once()
    observed = observe(worker(0), worker(1, "Failed"), record=record)
    assert decide(with_workers(job, 1), observed, at(9)).stop == ("pi-worker-1",)


def test_shrinking_stops_workers_and_keeps_the_launcher() -> None:
    job, observed = running_job()
    decision = decide(with_workers(job, 1), observed, at(9))
    assert decision.stop == ("pi-worker-1",)
    assert truth(decision.status)[c.RUNNING] == c.TRUE
    gone = observe(launcher(), worker(0))
    assert not decide(with_workers(job, 1), gone, at(9)).acts


def test_growing_starts_the_new_workers_only() -> None:
    job, observed = running_job()
    decision = decide(with_workers(job, 4), observed, at(9))
    assert decision.start_workers == (2, 3)
    assert not decision.stop


def test_a_long_history_stays_small() -> None:
    job, _ = running_job(backoff_limit=2_000)
    record, long = Record(), End(code=1, message="x" * 4096)
    for _ in range(50):
        pod = launcher("Failed", attempt=record.attempt, end=long)
        step = decide(job, observe(pod, worker(0), worker(1), record=record), T0)
        record = Record(step.record.attempt, step.record.failures)
    assert len(record.failures) == 50
    assert sum(len(f.message) for f in record.failures) < 8 * 700
    assert all(f.message for f in record.failures[-8:])


def test_the_rank_that_failed_first_is_named() -> None:
    """OBS-2: mpirun takes the others down afterwards, and their ends come later."""
    job, _ = running_job()
    ranks = (
        ObservedRank(0, 4, "pi-worker-0", end=End(signal=15), ended=10.5),
        ObservedRank(1, 4, "pi-worker-0", end=End(code=0), ended=9.0),
        ObservedRank(2, 4, "pi-worker-1", end=End(signal=9), ended=10.1),
        ObservedRank(3, 4, "pi-worker-1"),
    )
    observed = replace(observe(launcher("Failed"), worker(0), worker(1)), ranks=ranks)
    (failure,) = decide(job, observed, at(5)).record.failures
    assert "rank 2 on pi-worker-1 was the first to fail, with signal 9 (SIGKILL)" in failure.message


def test_the_rank_is_named_beside_the_launcher_s_own_words_unless_they_name_it() -> None:
    """OBS-2: on a cluster the end of the launcher's log is there too, and says less."""
    job, _ = running_job()
    ranks = (ObservedRank(2, 4, "pi-worker-1", end=End(code=1), ended=10.1),)
    for said, named in (("MPI_ABORT was invoked", 1), ("rank 2 on pi-worker-1 raised E", 0)):
        pod = launcher("Failed", end=End(code=1, message=said))
        observed = replace(observe(pod, worker(0), worker(1)), ranks=ranks)
        (failure,) = decide(job, observed, at(5)).record.failures
        assert said in failure.message and "rank 2 on pi-worker-1" in failure.message
        assert failure.message.count("was the first to fail") == named
