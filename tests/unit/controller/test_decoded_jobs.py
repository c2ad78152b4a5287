"""Stored jobs, made sense of."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml import load
from mpi_trainer.controller.decoded_jobs import DecodedJobs, with_schedule_timeout
from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.controller.mpijob import record
from mpi_trainer.controller.objects import StoredJob
from mpi_trainer.decide.observed import Failure, Record
from mpi_trainer.runtime.partial import Key


def stored(spec: Any, generation: int = 1) -> StoredJob:
    meta = {"name": "pi", "namespace": "lab", "uid": "u", "generation": generation}
    raw = msgspec.json.encode({"metadata": meta, "spec": spec})
    return msgspec.json.decode(raw, type=StoredJob)


GOOD = {
    "runPolicy": {"backoffLimit": 2},
    "mpiReplicaSpecs": {
        "Launcher": {"template": {"spec": {"containers": [{"name": "l", "image": "x"}]}}}
    },
}


def test_a_good_job_has_its_defaults() -> None:
    loaded = DecodedJobs(MPIJob, load.job, JobMemories()).load(stored(GOOD))
    assert loaded.errors == ()
    assert (loaded.job.slots, loaded.job.launcher.replicas) == (1, 1)


@pytest.mark.parametrize("spec", [[], None, "x", {"mpiReplicaSpecs": 5}, {"slotsPerWorker": "a"}])
def test_nonsense_has_errors_and_does_not_raise(spec: Any) -> None:
    assert DecodedJobs(MPIJob, load.job, JobMemories()).load(stored(spec)).errors


def test_the_administrators_limit_is_for_jobs_without_one() -> None:
    def limit(policy: dict[str, Any]) -> int | None:
        spec = {**GOOD, "runPolicy": policy}
        found = (
            DecodedJobs(MPIJob, load.job, JobMemories(), with_schedule_timeout(300))
            .load(stored(spec))
            .job.spec.run_policy.scheduling_policy
        )
        return found.schedule_timeout_seconds if found else None

    assert limit({}) == 300
    assert limit({"schedulingPolicy": {"queue": "q"}}) == 300
    assert limit({"schedulingPolicy": {"scheduleTimeoutSeconds": 0}}) == 0
    assert limit({"schedulingPolicy": {"scheduleTimeoutSeconds": 7}}) == 7


def test_a_change_is_read_anew() -> None:
    memories = JobMemories()
    memories.begin(Key("lab", "pi"), "u")
    jobs = DecodedJobs(MPIJob, load.job, memories)
    assert jobs.load(stored(GOOD)).job.slots == 1
    assert jobs.load(stored({**GOOD, "slotsPerWorker": 4}, generation=2)).job.slots == 4


def test_a_record_survives_its_annotation() -> None:
    memory = Record(attempt=2, failures=(Failure(1, "X", "why", "pi-launcher"),))
    body: Any = record.patch(memory, "5")
    assert record.read(body["metadata"]["annotations"]) == memory
    empty: Any = record.patch(Record(), "5")
    assert list(empty["metadata"]["annotations"].values()) == [None]


def test_a_mangled_record_is_not_guessed() -> None:
    with pytest.raises(record.UnreadableRecord, match="remove the annotation"):
        record.read({"mpi-trainer.opendatahub.io/record": "{"})


def test_an_annotation_that_another_version_knows_stops_no_job() -> None:
    """Strictness is admission's: here the job may have begun long ago."""
    meta = {"name": "pi", "annotations": {"mpi-trainer.opendatahub.io/unknown": "x"}}
    raw = msgspec.json.encode({"metadata": meta, "spec": GOOD})
    loaded = DecodedJobs(MPIJob, load.job, JobMemories()).load(
        msgspec.json.decode(raw, type=StoredJob)
    )
    assert loaded.errors == ()
    assert loaded.job.metadata.annotations == meta["annotations"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        '{"failures":' + "[" * 5000,
        '{"attempt":1' + "0" * 5000 + "}",
        '{"retry_at":"0001-01-01T00:00:00+14:00"}',
        '{"retry_at":"9999-12-31T23:59:59-14:00"}',
        "x" * 20_000,
        '{"failures":[' + ",".join(['{"attempt":1,"reason":"","message":""}'] * 2000) + "]}",
        "\x00",
    ],
)
def test_a_record_that_nobody_of_us_wrote_is_unreadable(text: str) -> None:
    """A user can write the annotation: it is bounded, and nothing else is raised."""
    with pytest.raises(record.UnreadableRecord, match="cannot be read"):
        record.read({"mpi-trainer.opendatahub.io/record": text})
