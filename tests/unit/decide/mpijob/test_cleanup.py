"""What a finished job gives back (AC-4, AC-15, AC-16)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mpi_trainer.decide.mpijob.decide import decide
from tests.unit.decide.mpijob.jobs import (
    at,
    launcher,
    observe,
    running_job,
    stored,
    with_policy,
    worker,
)

LEFT = (
    launcher("Succeeded"),
    worker(0),
    worker(1, "Pending"),
    worker(2, "Failed"),
    worker(3, "Succeeded"),
    worker(4, terminating=True),
)


@pytest.mark.parametrize(
    ("policy", "gone"),
    [
        (None, {"pi-worker-1"}),
        ("None", {"pi-worker-1"}),
        ("Running", {"pi-worker-0", "pi-worker-1"}),
        ("All", {"pi-launcher", *(f"pi-worker-{i}" for i in range(4))}),
    ],
)
def test_policy_names_the_pods_to_remove(policy: str | None, gone: set[str]) -> None:
    job, _ = running_job(clean_pod_policy=policy)
    over = decide(job, observe(launcher("Succeeded"), worker(0), worker(1)), at(5))
    assert not over.acts
    assert set(decide(stored(job, over), observe(*LEFT), at(6)).stop) == gone


@pytest.mark.parametrize("phase", ["Pending", "Running"])
@pytest.mark.parametrize("policy", [None, "None", "Running", "All"])
def test_a_job_that_failed_stops_its_launcher_whatever_the_policy(policy: str, phase: str) -> None:
    """A deadline that leaves the launcher computing is none."""
    job, observed = running_job(clean_pod_policy=policy, active_deadline_seconds=10)
    over = decide(job, observed, at(11))
    left = observe(launcher(phase), record=over.record)
    assert decide(stored(job, over), left, at(11)).stop == ("pi-launcher",)


def test_a_cleaned_job_is_left_alone() -> None:
    job, _ = running_job(clean_pod_policy="All")
    job = stored(job, decide(job, observe(launcher("Succeeded"), worker(0), worker(1)), at(5)))
    job = stored(job, decide(job, observe(), at(6)))
    last = decide(job, observe(), at(7))
    assert not last.acts
    assert last.status == job.status
    assert last.requeue_after is None


def test_a_finished_job_ignores_suspend_and_stays_finished() -> None:
    job, _ = running_job()
    job = stored(job, decide(job, observe(launcher("Succeeded"), worker(0), worker(1)), at(5)))
    after = decide(with_policy(job, suspend=True), observe(launcher("Succeeded")), at(6))
    assert not after.acts
    assert after.status.conditions == job.status.conditions


def test_what_another_controller_wrote_about_a_job_that_it_ended_stays() -> None:
    """MIG-3: upstream sets no lastReconcileTime, and counts no workers after the end."""
    job, _ = running_job(clean_pod_policy="None")
    job = stored(job, decide(job, observe(launcher("Succeeded"), worker(0), worker(1)), at(5)))
    theirs = replace(job.status, last_reconcile_time=None, replica_statuses={})
    job = replace(job, status=theirs)
    assert decide(job, observe(worker(0), worker(1)), at(6)).status == theirs
