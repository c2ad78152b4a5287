"""How many workers a job may have: warned above 64, refused above 10,000, or as a flag says."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError

import pytest

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.validation.worker_limits import (
    MOST_WORKERS,
    WorkerLimits,
    most_from_flag,
    trainjob_errors,
)
from mpi_trainer.api.yaml import load
from mpi_trainer.webhook.mpijob.judge import judge
from mpi_trainer.webhook.review import UPDATE, AdmissionRequest
from mpi_trainer.webhook.trainjob.judge import judge_with_runtime
from tests.unit.api.building import changed, job
from tests.unit.api.trainers import runtime, train_job

WORKERS = ("spec", "mpiReplicaSpecs", "Worker", "replicas")
NODES = ("spec", "trainer", "numNodes")
FEW = WorkerLimits(warned=2, most=4)


def with_workers(count: int) -> dict[str, object]:
    return changed(job(), [(WORKERS, count)])


def test_a_file_with_more_than_64_workers_is_taken_with_a_warning() -> None:
    assert not [w for w in warned(with_workers(64)) if w.startswith(".".join(WORKERS))]
    (said,) = [w for w in warned(with_workers(65)) if w.startswith(".".join(WORKERS))]
    assert "more than 64 workers are many" in said and "use fewer, larger workers" in said
    many = changed(train_job(), [(NODES, 65)])
    assert any("more than 64 nodes are many" in w for w in warned(many))


def warned(made: dict[str, object]) -> list[str]:
    return [str(w) for w in load.objects(json.dumps(made), "file").warnings]


def test_more_than_ten_thousand_are_refused_everywhere() -> None:
    (said,) = load.job(with_workers(MOST_WORKERS + 1)).errors
    assert said.path == WORKERS and "must be at most 10000" in said.rule


def test_admission_holds_an_administrator_s_limits() -> None:
    for count, refused, warned in ((2, 0, 0), (3, 0, 1), (4, 0, 1), (5, 1, 1)):
        found = judge(AdmissionRequest(object=with_workers(count)), FEW)
        assert len(found.errors) == refused, count
        assert len([w for w in found.warnings if w.path == WORKERS]) == warned, count
    silent = WorkerLimits(warned=0)
    assert not judge(AdmissionRequest(object=with_workers(100)), silent).warnings


def test_a_job_over_a_new_limit_can_still_be_suspended_and_shrunk_but_not_grow() -> None:
    old = with_workers(6)

    def errors(new: dict[str, object]) -> int:
        request = AdmissionRequest(operation=UPDATE, object=new, old_object=old)
        return len(judge(request, FEW).errors)

    assert errors(changed(with_workers(6), [(("spec", "runPolicy", "suspend"), True)])) == 0
    assert errors(with_workers(5)) == 0
    assert errors(with_workers(7)) == 1


def test_nodes_of_a_trainjob_are_held_to_the_same_limits() -> None:
    found = load.train_job(changed(train_job(), [(NODES, 5)])).value
    held = load.runtime(runtime()).value
    verdict = judge_with_runtime(found, held, None, FEW)  # type: ignore[arg-type]
    (said,) = verdict.errors
    assert said.path == NODES and "a job has at most 4" in said.rule
    again = judge_with_runtime(found, held, found, FEW)  # type: ignore[arg-type]
    assert again.errors == (), "it was admitted before"
    assert list(trainjob_errors(found, 4, FEW)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0", "-1", "10001", "x", "", "9" * 400, "٣"])
def test_a_limit_that_is_none_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="from 1 to 10000"):
        most_from_flag(text)
    assert most_from_flag("64") == 64


def test_the_job_of_these_tests_is_sound() -> None:
    assert isinstance(load.job(with_workers(2)).value, MPIJob)
