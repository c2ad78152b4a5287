"""Every field of REST's answers is in gRPC's messages, but for those that are named here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest

from mpi_trainer.server import values
from mpi_trainer.server.rpc.messages import NAMES, filled, state_words
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

PAIRS: list[tuple[Any, Any, set[str]]] = [
    (values.Job, v1.MPIJob, {"kind"}),
    (values.JobItem, v1.MPIJobItem, {"kind", "runtime", "read_only"}),
    (values.JobList, v1.ListMPIJobsResponse, set()),
    (values.Facets, v1.Facets, {"kind", "runtime"}),
    (values.JobStatus, v1.MPIJobStatus, {"kind"}),
    (values.Replicas, v1.Replicas, set()),
    (values.Condition, v1.Condition, set()),
    (values.Pod, v1.Pod, set()),
    (values.Rank, v1.Rank, set()),
    (values.Attempt, v1.Attempt, set()),
    (values.Progress, v1.Progress, set()),
    (values.LogLine, v1.LogLine, set()),
    (values.Problem, v1.Problem, set()),
    (values.WrongField, v1.WrongField, set()),
]


@pytest.mark.parametrize(
    ("value", "message", "left_out"), PAIRS, ids=[p[0].__name__ for p in PAIRS]
)
def test_a_message_has_the_fields_of_its_value(
    value: Any, message: Any, left_out: set[str]
) -> None:
    """Where this fails: add the field to proto/, or name it above if gRPC has no use for it."""
    wanted = {NAMES.get(one.name, one.name) for one in msgspec.structs.fields(value)}
    assert wanted - {*message.DESCRIPTOR.fields_by_name} == left_out


def test_what_is_missing_is_told_from_nothing() -> None:
    rank = filled(v1.Rank, values.Rank(0, "w", "", "", 0, None, ""))
    assert rank.HasField("exit_code") and rank.exit_code == 0
    assert not rank.HasField("signal")


def test_states_times_and_the_manifest_are_kept() -> None:
    manifest = {"metadata": {"name": "ä"}, "spec": {"x": 2**60}}
    at = datetime(2026, 1, 31, 12, 0, 0, 250, UTC)
    job = values.Job(
        "MPIJob", "n", "a", "u", "Suspended", "", "", True, 3, 2, "OpenMPI", "i", ("a", "b"),
        at, None, None, None, manifest,
    )  # fmt: skip
    made = filled(v1.MPIJob, job)
    assert (made.state, [*made.command]) == (v1.JOB_STATE_SUSPENDED, ["a", "b"])
    assert made.created.ToDatetime(UTC) == at and not made.HasField("started")
    assert msgspec.json.decode(made.manifest_json) == manifest


def test_every_state_has_a_number_and_back() -> None:
    words = get_args(values.State)
    numbers = [getattr(v1, f"JOB_STATE_{word.upper()}") for word in words]
    assert state_words(numbers).split(",") == [*words]
    assert state_words([99]) == "99"
