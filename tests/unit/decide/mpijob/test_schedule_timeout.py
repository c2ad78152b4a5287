"""scheduleTimeoutSeconds and launcherCreationPolicy (AC-2, AC-16)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import ObservedPod
from tests.unit.decide.mpijob.jobs import (
    T0,
    at,
    condition,
    failed_once,
    launcher,
    make_job,
    observe,
    running_job,
    stored,
    with_workers,
    worker,
)

LATE = "WaitForWorkersReady"
REMINDER = timedelta(seconds=30)


def waiting(index: int, **fields: object) -> ObservedPod:
    return worker(index, "Pending", scheduled=False, **fields)


@pytest.mark.parametrize(
    ("pods", "over"),
    [
        ([], True),
        ([waiting(0), waiting(1)], True),
        ([worker(0), waiting(1)], True),
        ([worker(0), worker(1, "Pending")], True),
        ([worker(0), worker(1, "Pending", preparing=True)], False),
        ([worker(0), worker(1)], False),
        ([launcher("Pending", scheduled=False), worker(0), worker(1)], True),
        ([launcher("Pending"), worker(0), worker(1)], True),
        ([launcher("Pending", preparing=True), worker(0), worker(1)], False),
    ],
    ids=[
        "none made",
        "none placed",
        "one waits",
        "one waits for its image",
        "one is being prepared",
        "all run, and the launcher is not made yet",
        "launcher waits",
        "launcher waits for its image",
        "launcher is being prepared",
    ],
)
def test_job_fails_when_its_pods_do_not_run_in_time(pods: list[ObservedPod], over: bool) -> None:
    """AC-16, W-4."""
    job = make_job(timeout=30)
    job = stored(job, decide(job, observe(), T0))
    before = decide(job, observe(*pods), at(29))
    assert not c.finished(before.status.conditions)
    assert before.requeue_after == (timedelta(seconds=1) if over else REMINDER)
    decision = decide(job, observe(*pods), at(30))
    assert c.finished(decision.status.conditions) is over


def test_timeout_tells_what_is_missing_and_leaves_no_pod_pending() -> None:
    """AC-16."""
    job = make_job(timeout=30)
    job = stored(job, decide(job, observe(), T0))
    observed = observe(launcher("Pending", scheduled=False), worker(0), waiting(1))
    decision = decide(job, observed, at(31))
    failed = condition(decision.status, c.FAILED)
    assert failed.reason == reasons.SCHEDULING_TIMEOUT
    assert failed.message == (
        "Not all pods ran within 30 s: 2 of 3 pods have no node: no scheduler has looked at them "
        "yet (pi-worker-1 and 1 more); ask for fewer or smaller pods, free resources, or raise "
        "runPolicy.schedulingPolicy.scheduleTimeoutSeconds."
    )
    cleaned = decide(stored(job, decision), observed, at(31))
    assert cleaned.stop == ("pi-launcher", "pi-worker-1")


def test_a_timeout_spends_no_attempt_and_tells_the_true_cause() -> None:
    """W-4: the record of a job that never ran has one entry, the end itself."""
    job = make_job(timeout=300)
    job = stored(job, decide(job, observe(), T0))
    why = 'persistentvolumeclaim "data" not found'
    observed = observe(launcher(), worker(0), waiting(1, why=why))
    for second in range(10, 300, 30):
        step = decide(job, observed, at(second))
        assert step.record == observed.record
        assert why in condition(step.status, c.RUNNING).message
        job = stored(job, step)
    over = decide(job, observed, at(300))
    failed = condition(over.status, c.FAILED)
    assert failed.reason == reasons.SCHEDULING_TIMEOUT
    assert f"1 of 3 pods have no node: {why} (pi-worker-1)" in failed.message
    assert [f.reason for f in over.record.failures] == [reasons.SCHEDULING_TIMEOUT]
    assert over.record.attempt == 1
    never = condition(over.status, c.RUNNING).message
    assert why in never, "what it waited for is not overwritten by its end"


def test_an_image_that_does_not_come_is_no_missing_place() -> None:
    """W-4: the words of a timeout fit what was waited for."""
    job = make_job(timeout=30)
    job = stored(job, decide(job, observe(), T0))
    late = worker(1, "Pending", waiting="ImagePullBackOff", why="Back-off pulling image")
    failed = condition(decide(job, observe(launcher(), worker(0), late), at(30)).status, c.FAILED)
    assert failed.message == (
        "Not all pods ran within 30 s: 1 of 3 pods cannot get an image (ImagePullBackOff): "
        "Back-off pulling image; check its name and tag, and that nodes can reach the registry "
        "(pi-worker-1); see to the cause, or raise "
        "runPolicy.schedulingPolicy.scheduleTimeoutSeconds."
    )


@pytest.mark.parametrize("timeout", [None, 0])
def test_without_a_timeout_a_job_waits(timeout: int | None) -> None:
    job = make_job(timeout=timeout)
    job = stored(job, decide(job, observe(), T0))
    decision = decide(job, observe(waiting(0), waiting(1)), at(1e6))
    assert not c.finished(decision.status.conditions)
    assert decision.requeue_after == REMINDER


def test_a_running_job_is_not_timed_when_it_grows_or_loses_a_worker() -> None:
    job, _ = running_job(timeout=30)
    for workers in (2, 3):
        decision = decide(with_workers(job, workers), observe(launcher(), worker(0)), at(7200))
        assert not c.finished(decision.status.conditions)
        assert 1 in decision.start_workers


def test_every_attempt_has_the_whole_time_to_itself() -> None:
    """Neither hours of running nor the rest count against the places of the next attempt."""
    job, record = failed_once(timeout=5)
    job = stored(job, decide(job, observe(record=record), at(0.5)))
    begun = decide(job, observe(record=record), at(7200))
    assert begun.start_workers == (0, 1)
    job = stored(job, begun)
    pods = (waiting(0, attempt=2), waiting(1, attempt=2))
    still = decide(job, observe(*pods, record=begun.record), at(7204))
    assert still.requeue_after == timedelta(seconds=1)
    over = decide(job, observe(*pods, record=begun.record), at(7205))
    assert condition(over.status, c.FAILED).reason == reasons.SCHEDULING_TIMEOUT


def test_a_late_launcher_is_not_timed() -> None:
    job = make_job(timeout=30, launcher_creation_policy=LATE)
    job = stored(job, decide(job, observe(), T0))
    observed = observe(launcher("Pending", scheduled=False), worker(0), worker(1))
    assert not c.finished(decide(job, observed, at(600)).status.conditions)


@pytest.mark.parametrize(
    ("policy", "pods", "launched"),
    [
        (None, [], True),
        ("AtStartup", [worker(0, "Pending")], True),
        (LATE, [], False),
        (LATE, [worker(0), worker(1, ready=False)], False),
        (LATE, [worker(0), worker(1)], True),
        (LATE, [worker(0), worker(1, terminating=True)], False),
    ],
)
def test_launcher_comes_when_its_policy_allows(
    policy: str | None, pods: list[ObservedPod], launched: bool
) -> None:
    """AC-2."""
    job = make_job(launcher_creation_policy=policy)
    assert decide(job, observe(*pods), T0).start_launcher is launched


def test_a_late_launcher_without_workers_comes_at_once() -> None:
    job = make_job(0, launcher_creation_policy=LATE)
    decision = decide(job, observe(), T0)
    assert decision.start_launcher
    assert decision.start_workers == ()
