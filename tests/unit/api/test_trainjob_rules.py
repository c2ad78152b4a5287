"""Which TrainJobs and runtimes are refused, and in which words. CTL-13, API-2."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.annotations import CLEAN, TRAINJOB_KNOWN, TTL
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import compatibility
from mpi_trainer.api.yaml import load
from mpi_trainer.decide.trainjob import status_annotations
from tests.unit.api import traincases
from tests.unit.api.traincases import RUNTIMES, RUNTIMES_REFUSED, RUNTIMES_TAKEN, Refused, Taken
from tests.unit.api.trainers import loaded, loaded_runtime, runtime, train_job


def errors(one: Refused | Taken) -> tuple[FieldError, ...]:
    found = load.train_job(traincases.case_job(one))
    if found.errors:
        return found.errors
    assert isinstance(found.value, TrainJob)
    return compatibility.errors(found.value, loaded_runtime(RUNTIMES[one.runtime]))


@pytest.mark.parametrize("one", traincases.REFUSED, ids=lambda one: one.words)
def test_job_is_refused_with_field_rule_and_remedy(one: Refused) -> None:
    found = errors(one)
    assert any(one.words in str(error) for error in found), found
    assert len(found) <= 2
    assert all(error.path and error.problem and error.rule and error.remedy for error in found)


@pytest.mark.parametrize("one", traincases.TAKEN, ids=repr)
def test_job_is_taken(one: Taken) -> None:
    assert errors(one) == ()


@pytest.mark.parametrize(
    ("data", "words"), [case[:2] for case in RUNTIMES_REFUSED], ids=lambda part: str(part)[:40]
)
def test_runtime_is_refused_with_field_rule_and_remedy(data: dict[str, Any], words: str) -> None:
    found = load.runtime(data).errors
    assert any(words in str(error) for error in found), found
    assert all(error.path and error.rule and error.remedy for error in found)


def test_runtime_is_taken() -> None:
    for data in RUNTIMES_TAKEN:
        assert load.runtime(data).errors == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mpi-many", "would start 4 launchers"),
        ("mpi-headless", "needs a replicated job `launcher`"),
    ],
)
def test_runtime_that_only_we_cannot_serve_is_taken_with_a_warning(name: str, words: str) -> None:
    found = load.runtime(RUNTIMES[name])
    assert isinstance(found.value, Runtime)
    assert any(words in str(warning) for warning in found.warnings)


def test_single_node_that_becomes_two_is_a_warning() -> None:
    job = loaded(train_job((("spec", "trainer", "numNodes"), 1)))
    assert any(
        "two pods run ranks" in str(w)
        for w in compatibility.warnings(job, loaded_runtime(runtime()))
    )


@pytest.mark.parametrize("spec", [{"replicatedJobs": 3}, {"replicatedJobs": [{"template": []}]}])
def test_runtime_of_the_wrong_shape_refuses_its_jobs_and_raises_nothing(spec: Any) -> None:
    found = load.runtime(runtime((("spec", "template", "spec"), spec)))
    assert isinstance(found.value, Runtime)
    assert found.errors
    errors = compatibility.errors(loaded(train_job()), found.value)
    assert all("the runtime cannot be used" in str(error) for error in errors)
    assert errors


def test_table_is_as_long_as_it_should_be() -> None:
    """Issue 9, Shows 5."""
    assert len(traincases.REFUSED) + len(traincases.TAKEN) >= 60


def test_every_annotation_that_the_controller_writes_is_known() -> None:
    """Or a copy of a finished job could not be submitted."""
    names = (
        name for name in vars(status_annotations) if name.isupper() and not name.startswith("_")
    )
    values = (getattr(status_annotations, name) for name in names)
    written = {value for value in values if isinstance(value, str) and "/" in value}
    assert written <= set(TRAINJOB_KNOWN)
    assert {TTL, CLEAN} <= written
