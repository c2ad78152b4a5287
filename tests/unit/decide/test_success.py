"""Success is what the ranks say, not what the launcher returned."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import End, ObservedRank
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    event_reasons,
    launcher,
    make_job,
    observe,
    rank,
    running_job,
    stored,
    truth,
    with_policy,
    worker,
)

DONE = (launcher("Succeeded"), worker(0), worker(1))


@pytest.mark.parametrize(
    "ranks",
    [
        (),
        (rank(0), rank(1, pod="pi-worker-1")),
        (rank(0), rank(1, code=9, attempt=7), rank(1, code=None, attempt=7)),
    ],
    ids=["none reported", "all well", "others of another attempt"],
)
def test_job_succeeds(ranks: tuple[ObservedRank, ...]) -> None:
    """AC-4."""
    job, _ = running_job()
    decision = decide(job, observe(*DONE, ranks=ranks), at(5))
    assert truth(decision.status) == {
        c.CREATED: c.TRUE,
        c.RUNNING: c.FALSE,
        c.SUCCEEDED: c.TRUE,
    }
    assert decision.status.completion_time == at(5)
    assert event_reasons(decision) == [reasons.SUCCEEDED]
    assert decision.requeue_after is not None


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ((rank(0, pod="pi-launcher"), rank(1)), "1 of 2 ranks ran on the launcher"),
        ((rank(0), rank(1)), "2 ranks ran on pi-worker-0, which has slots for 1, while 1 of 2"),
    ],
)
def test_a_surprising_placement_is_a_warning_and_a_success(
    ranks: tuple[ObservedRank, ...], words: str
) -> None:
    """AC-4"""
    job, _ = running_job()
    decision = decide(job, observe(*DONE, ranks=ranks), at(5))
    assert c.holds(decision.status.conditions, c.SUCCEEDED)
    (warning,) = [e for e in decision.events if e.type == "Warning"]
    assert warning.reason == reasons.PLACEMENT_SURPRISING
    assert words in warning.message


def test_a_success_without_a_rank_is_a_warning() -> None:
    """W-9: where the agent has watched; else nobody knows."""
    job, _ = running_job()
    for unstarted in (True, False):
        ended = launcher("Succeeded", end=End(code=0, unstarted=unstarted))
        decision = decide(job, observe(ended, *DONE[1:]), at(5))
        assert c.holds(decision.status.conditions, c.SUCCEEDED)
        said = [e.message for e in decision.events if e.type == "Warning"]
        assert [text.startswith("MPI started no rank") for text in said] == [True] * unstarted


@pytest.mark.parametrize(
    ("ranks", "reason", "words"),
    [
        (
            (rank(0), rank(1, code=7)),
            reasons.RANK_FAILED,
            "Rank 1 on pi-worker-0 ended with exit code 7; the launcher returned 0.",
        ),
        (
            (rank(0, code=7), rank(1, code=8)),
            reasons.RANK_FAILED,
            "Rank 0 on pi-worker-0 ended with exit code 7, and 1 more; the launcher returned 0.",
        ),
        (
            (rank(0), rank(1, code=None)),
            reasons.RANKS_LOST,
            "1 of 2 ranks was never seen (first: rank 1 on pi-worker-0)",
        ),
        (
            (replace(rank(0), foreign=True), replace(rank(1), foreign=True)),
            reasons.WORLDS_OF_ONE,
            "2 ranks used another MPI library than the mpirun that started them",
        ),
        (
            (rank(0, pod="pi-launcher"), rank(1, pod="pi-launcher")),
            reasons.PLACEMENT_WRONG,
            "All 2 ranks ran on the launcher and none on the 2 workers",
        ),
    ],
)
def test_exit_code_0_is_not_enough(
    ranks: tuple[ObservedRank, ...], reason: str, words: str
) -> None:
    job, _ = running_job(backoff_limit=0)
    decision = decide(job, observe(*DONE, ranks=ranks), at(5))
    failed = condition(decision.status, c.FAILED)
    assert failed.reason == reason
    assert words in failed.message


def test_an_objection_starts_another_attempt() -> None:
    job, _ = running_job()
    decision = decide(job, observe(*DONE, ranks=(rank(code=None),)), at(5))
    assert decision.record.attempt == 2
    assert not c.finished(decision.status.conditions)


def test_ranks_lost_with_a_failed_worker_are_blamed_on_the_worker() -> None:
    job, _ = running_job()
    pods = (launcher("Succeeded"), worker(0, "Failed"), worker(1))
    decision = decide(job, observe(*pods, ranks=(rank(code=None),)), at(5))
    assert decision.record.failures[0].reason == reasons.WORKER_FAILED


@pytest.mark.parametrize(
    ("workers", "as_worker"), [(0, None), (2, True)], ids=["no workers", "launcher is one"]
)
def test_ranks_belong_on_the_launcher_where_it_is_meant(
    workers: int, as_worker: bool | None
) -> None:
    job = make_job(workers, run_launcher_as_worker=as_worker)
    observed = observe(launcher("Succeeded"), ranks=(rank(pod="pi-launcher"),))
    assert c.holds(decide(job, observed, at(5)).status.conditions, c.SUCCEEDED)


def test_a_success_beats_a_suspension_that_came_too_late() -> None:
    job, _ = running_job()
    decision = decide(with_policy(job, suspend=True), observe(*DONE), at(5))
    assert c.holds(decision.status.conditions, c.SUCCEEDED)


def test_ranks_that_still_run_are_no_objection_while_the_launcher_runs() -> None:
    job, _ = running_job()
    observed = observe(launcher(), worker(0), worker(1), ranks=(rank(code=None), rank(1, code=3)))
    assert decide(job, observed, at(5)).record.attempt == 1


def test_without_mpi_a_job_runs_until_every_pod_has_done_its_part() -> None:
    """The launcher is one of them; a worker that is done before it starts is no failure."""
    job = make_job()
    job = stored(job, decide(job, observe(every_pod_works=True), T0))
    early = observe(worker(0, "Succeeded", end=End(code=0)), worker(1), every_pod_works=True)
    step = decide(job, early, T0)
    assert (step.start_launcher, step.record.failures) == (True, ())
    done = launcher("Succeeded", end=End(code=0))
    step = decide(job, observe(done, *early.workers, every_pod_works=True), T0)
    assert condition(step.status, c.RUNNING).status == c.TRUE
    assert not c.finished(step.status.conditions)
    all_done = (done, *(worker(i, "Succeeded", end=End(code=0)) for i in range(2)))
    step = decide(job, observe(*all_done, every_pod_works=True), T0)
    assert condition(step.status, c.SUCCEEDED).status == c.TRUE
