"""Metrics keep the names that existing dashboards read (CTL-12)."""

from __future__ import annotations

import asyncio

import pytest

from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.runtime.job_metrics import (
    DURATIONS,
    STARTS,
    MPIJobMetrics,
    PresentMPIJobs,
    PresentTrainJobs,
)
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.partial import Meta
from mpi_trainer.runtime.workers import DONE, Result, Workers
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.runtime.fake_time import run_in_fake_time

MACHINERY = [
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_queue_duration_seconds_bucket",
    "workqueue_work_duration_seconds_bucket",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "workqueue_retries_total",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
    "controller_runtime_max_concurrent_reconciles",
    "event_loop_lag_seconds",
    "process_cpu_seconds_total",
]
JOBS = [
    "training_operator_mpijob_created_total",
    "training_operator_mpijob_running_total",
    "training_operator_mpijob_succeeded_total",
    "training_operator_mpijob_failed_total",
    "training_operator_mpijob_queued_total",
    "training_operator_mpijob_duration_seconds_bucket",
    "mpi_operator_jobs_created_total",
    "mpi_operator_jobs_successful_total",
    "mpi_operator_jobs_failed_total",
    "mpi_operator_job_info",
    "mpi_operator_is_leader",
]


async def nothing(_: str) -> Result:
    return DONE


def shown(metrics: Metrics) -> set[str]:
    lines = metrics.text().decode().splitlines()
    return {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}


def test_the_machinery_shows_its_metrics_from_the_start() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        queue: WorkQueue[str] = WorkQueue(observer=metrics.queue("mpijob"))
        Workers("mpijob", queue, nothing, metrics)
        assert set(MACHINERY) <= shown(metrics)
        assert not [name for name in shown(metrics) if name.endswith("_created")]

    run_in_fake_time(scenario())


def test_depth_and_age_are_those_of_the_moment() -> None:
    async def scenario() -> None:
        metrics = Metrics()
        queue: WorkQueue[str] = WorkQueue(observer=metrics.queue("q"))
        metrics.watch_queue("q", queue)
        queue.add("a")
        queue.add("b")
        queue.add("c", urgent=False)
        await queue.get()
        await asyncio.sleep(7)
        labels = {"name": "q", "controller": "q"}
        value = metrics.registry.get_sample_value
        assert value("workqueue_depth", {**labels, "priority": "0"}) == 1
        assert value("workqueue_depth", {**labels, "priority": "-100"}) == 1
        longest = value("workqueue_longest_running_processor_seconds", labels)
        assert longest == pytest.approx(7)

    run_in_fake_time(scenario())


def test_calls_are_counted_by_code_and_those_without_an_answer_too() -> None:
    metrics = Metrics()
    observe = metrics.observe_call("api:6443")
    observe("GET", "/api/v1/pods", 200, 0.1)
    observe("POST", "/api/v1/pods", 0, 30.0)
    value = metrics.registry.get_sample_value
    host = {"host": "api:6443"}
    name = "rest_client_requests_total"
    assert value(name, {"code": "200", "method": "GET", **host}) == 1
    assert value(name, {"code": "<error>", "method": "POST", **host}) == 1


def test_jobs_are_counted_under_both_families_of_names() -> None:
    metrics = Metrics()
    jobs = MPIJobMetrics(metrics.registry)
    jobs.created("team")
    jobs.running("team", 1.5)
    jobs.succeeded("team", 60)
    jobs.failed("team")
    jobs.launcher("team", "train-launcher")
    metrics.registry.register(PresentMPIJobs([stored("team", "Running")], lambda: True))
    assert set(JOBS) <= shown(metrics)
    value = metrics.registry.get_sample_value
    assert value("mpi_operator_jobs_successful_total") == 1
    assert value("training_operator_mpijob_succeeded_total", {"namespace": "team"}) == 1
    assert value("training_operator_mpijob_duration_seconds_sum", {"namespace": "team"}) == 60


def stored(namespace: str, state: str) -> StoredJob:
    return StoredJob(metadata=Meta(name="a", namespace=namespace), state=state)


def test_running_and_queued_are_present_numbers_and_follow_the_store() -> None:
    metrics, jobs = (
        Metrics(),
        [
            stored("a", "Running"),
            stored("a", "Running"),
            stored("a", "Suspended"),
            stored("a", "Created"),
            stored("a", "Succeeded"),
            stored("b", "Failed"),
            stored("b", ""),
        ],
    )
    metrics.registry.register(PresentMPIJobs(jobs, lambda: True))
    value = metrics.registry.get_sample_value
    prefix = "training_operator_mpijob"
    assert value(f"{prefix}_running_total", {"namespace": "a"}) == 2
    assert value(f"{prefix}_queued_total", {"namespace": "a"}) == 2
    assert value(f"{prefix}_running_total", {"namespace": "b"}) == 0
    assert value(f"{prefix}s", {"namespace": "a", "state": "Succeeded"}) == 1
    assert value(f"{prefix}s", {"namespace": "b", "state": "Unknown"}) == 1
    assert b"# TYPE training_operator_mpijob_running_total gauge" in metrics.text()
    jobs.clear()
    assert value(f"{prefix}_running_total", {"namespace": "a"}) is None, "no series is left behind"


def test_only_the_replica_that_leads_says_how_many_jobs_there_are() -> None:
    metrics, leads = Metrics(), [False]
    jobs = PresentTrainJobs([stored("a", "Running")], lambda: leads[0])
    metrics.registry.register(jobs)
    where = {"namespace": "a", "state": "Running"}
    assert metrics.registry.get_sample_value("kubeflow_trainer_trainjobs", where) is None
    leads[0] = True
    assert metrics.registry.get_sample_value("kubeflow_trainer_trainjobs", where) == 1


def test_durations_tell_ten_minutes_and_two_hours_apart_from_the_rest() -> None:
    """CTL-12."""
    for buckets in (DURATIONS, STARTS):
        assert {600.0, 7200.0} <= set(buckets)
        assert list(buckets) == sorted(buckets)


def test_a_deleted_job_leaves_no_series() -> None:
    metrics = Metrics()
    jobs = MPIJobMetrics(metrics.registry)
    jobs.launcher("team", "train-launcher")
    jobs.deleted("team", "train-launcher")
    jobs.deleted("team", "never-seen")
    assert "mpi_operator_job_info" not in shown(metrics)


def test_two_managers_in_one_process_do_not_share_counts() -> None:
    one, two = Metrics(), Metrics()
    one.loop_lag.set(5)
    assert two.registry.get_sample_value("event_loop_lag_seconds") == 0
