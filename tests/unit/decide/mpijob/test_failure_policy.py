"""A job's podFailurePolicy: what ends it at once, and what costs nothing of its budget (CTL-11)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds import failure_policy
from mpi_trainer.api.kinds.annotations import POD_FAILURE_POLICY
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide import reasons
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.observed import End
from tests.unit.api.building import errors
from tests.unit.decide.mpijob.jobs import (
    at,
    condition,
    launcher,
    observe,
    replace,
    running_job,
    worker,
)

ANNOTATIONS = ("metadata", "annotations")
POLICY: dict[str, Any] = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42, 127]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [1]}},
    ]
}


def with_annotation(policy: object) -> MPIJob:
    found, _ = running_job(backoff_limit=6)
    text = policy if isinstance(policy, str) else json.dumps(policy)
    meta = replace(found.metadata, annotations={POD_FAILURE_POLICY: text})
    return replace(found, metadata=meta)


def failed(code: int, **more: Any) -> Any:
    return observe(launcher("Failed", end=End(code=code), **more), worker(0), worker(1))


def test_a_code_of_a_fail_job_rule_ends_the_job_at_its_first_attempt() -> None:
    found = decide(with_annotation(POLICY), failed(42), at(5))
    assert c.holds(found.status.conditions, c.FAILED)
    said = condition(found.status, c.FAILED)
    assert said.reason == reasons.FAILURE_POLICY
    assert said.message.endswith("By the job's podFailurePolicy it is not retried.")


def test_an_ignored_failure_leads_to_another_attempt_and_costs_nothing() -> None:
    found = decide(with_annotation(POLICY), failed(7), at(5))
    assert found.record.attempt == 2 and found.record.failures == ()
    assert found.record.retry_at is not None and found.record.retry_at > at(5)
    assert "it is not counted" in found.events[0].message


def test_a_disrupted_worker_is_ignored_by_its_condition() -> None:
    job = with_annotation(POLICY)
    gone = worker(1, "Failed", end=End(reason="Evicted"), disrupted=True)
    found = decide(job, observe(launcher(), worker(0), gone), at(5))
    assert found.record.attempt == 2 and found.record.failures == ()


def test_the_rest_between_ignored_attempts_grows() -> None:
    job, rests = with_annotation(POLICY), []
    for attempt in (1, 2, 3, 9):
        record = replace(decide(job, failed(7), at(5)).record, attempt=attempt, retry_at=None)
        pods = (launcher("Failed", end=End(code=7), attempt=attempt), worker(0), worker(1))
        found = decide(job, observe(*pods, record=record), at(5)).record
        assert found.retry_at is not None
        rests.append((found.retry_at - at(5)).total_seconds())
    assert rests == [1, 2, 4, 60]


def test_what_no_rule_names_counts_as_ever() -> None:
    found = decide(with_annotation(POLICY), failed(1), at(5))
    assert [f.reason for f in found.record.failures] == [reasons.LAUNCHER_FAILED]


def test_a_program_that_is_not_there_is_not_tried_for_ever() -> None:
    ignored = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [127]}}]}
    found = decide(with_annotation(ignored), failed(127), at(5))
    assert condition(found.status, c.FAILED).reason == reasons.NO_PROGRAM


@pytest.mark.parametrize("text", ["{", "[]", "x" * 5000, '{"rules": [{"action": "Stop"}]}'])
def test_a_policy_that_cannot_be_read_changes_nothing(text: str) -> None:
    found = decide(with_annotation(text), failed(42), at(5))
    assert len(found.record.failures) == 1


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"rules": [{"action": "FailIndex"}]}, "FailIndex"),
        ({"rules": [{"action": "Count"}]}, "needs either onExitCodes or onPodConditions"),
        (
            {"rules": [{"action": "Count", "onPodConditions": [{"type": "Ready"}]}]},
            "only DisruptionTarget is served",
        ),
        (
            {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": []}}]},
            "1 to 255 exit codes",
        ),
        (
            {"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [0]}}]},
            "0 is no failure",
        ),
        ({"rules": POLICY["rules"] * 7}, "more than 20 rules"),
        ({"rule": []}, "unknown field `rule`"),
        ("x" * 5000, "more than 4096 characters"),
    ],
)
def test_a_wrong_policy_is_told_with_what_to_write(policy: object, words: str) -> None:
    text = policy if isinstance(policy, str) else json.dumps(policy)
    (said,) = errors((ANNOTATIONS, {POD_FAILURE_POLICY: text}))
    assert POD_FAILURE_POLICY in said.partition(": ")[0]
    assert words in said and "write for example" in said
    assert errors((ANNOTATIONS, {POD_FAILURE_POLICY: json.dumps(POLICY)})) == []


def test_the_first_rule_that_fits_decides() -> None:
    policy = failure_policy.read(json.dumps(POLICY))
    assert policy.action(42, disrupted=True) == failure_policy.FAIL_JOB
    assert policy.action(None, disrupted=False) == failure_policy.COUNT
    assert policy.action(0, disrupted=False) == failure_policy.COUNT
