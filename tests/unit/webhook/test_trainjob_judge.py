"""TrainJobs at admission: times of patches, what may change, whose rights are needed. CTL-13."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from mpi_trainer.webhook.equality import same
from mpi_trainer.webhook.review import CREATE, UPDATE, AdmissionRequest
from mpi_trainer.webhook.trainjob import judge
from tests.unit.api.building import changed
from tests.unit.api.traincases import KUEUE, PATCHES, TRAINER
from tests.unit.api.trainers import patch, runtime, train_job

NOW = datetime(2026, 1, 31, 12, 0, 0, 5, UTC)
STAMP = "2026-01-31T12:00:00Z"
OLD = "2025-01-01T00:00:00Z"
SUSPEND = (("spec", "suspend"), True)


def create(job: dict[str, Any]) -> AdmissionRequest:
    return AdmissionRequest(operation=CREATE, namespace="ns", object=job)


def update(old: dict[str, Any], new: dict[str, Any]) -> AdmissionRequest:
    return AdmissionRequest(operation=UPDATE, namespace="ns", object=new, old_object=old)


def errors(old: dict[str, Any], new: dict[str, Any]) -> str:
    return "\n".join(str(error) for error in judge.judge(update(old, new)).errors)


def test_new_patches_are_stamped_and_a_given_time_stays() -> None:
    given = [patch("node"), {**patch("node", "b.io/x"), "time": OLD}]
    steps = judge.mutation(create(train_job((PATCHES, given))), NOW)
    assert steps == ({"op": "add", "path": "/spec/runtimePatches/0/time", "value": STAMP},)


def test_changed_patch_is_stamped_anew_and_an_unchanged_one_keeps_its_time() -> None:
    old = [{**patch("node", "a.io/x"), "time": OLD}, {**patch("node", "b.io/x"), "time": OLD}]
    new = [
        {**patch("node", "a.io/x", nodeSelector={"a": "b"}), "time": OLD},
        patch("node", "b.io/x"),
    ]
    steps = judge.mutation(update(train_job((PATCHES, old)), train_job((PATCHES, new))), NOW)
    assert [(step["path"][-6:], step["value"]) for step in steps] == [
        ("0/time", STAMP),
        ("1/time", OLD),
    ]


@pytest.mark.parametrize("data", [{}, {"spec": None}, {"spec": {"runtimePatches": [3]}}])
def test_what_cannot_be_read_is_left_to_the_definition(data: dict[str, Any]) -> None:
    assert judge.mutation(create(data), NOW) == ()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "runtimeRef", "name"), "other"),
        ((*TRAINER, "image"), "other"),
        ((*TRAINER, "numNodes"), 3),
        (("spec", "activeDeadlineSeconds"), 60),
        (("spec", "managedBy"), "kueue.x-k8s.io/multikueue"),
        (("spec", "initializer", "model", "storageUri"), "hf://x"),
    ],
)
def test_job_keeps_what_it_was_created_with(path: Any, value: Any) -> None:
    for suspended in ((), (SUSPEND,)):
        new = train_job((path, value), *suspended)
        assert f"spec.{path[1]}: Forbidden: a job keeps it for good" in errors(train_job(), new)


def test_job_written_back_without_its_explicit_zeros_is_unchanged() -> None:
    """Kueue's round trip: upstream's rules in the definition refuse it."""
    written = train_job(
        ((*TRAINER, "env"), [{"name": "A", "value": ""}]),
        ((*TRAINER, "resourcesPerNode"), {"limits": {"cpu": "1000m", "memory": 1.0}}),
        (PATCHES, [patch("node", volumes=[{"name": "d", "nfs": {"readOnly": False}}])]),
        SUSPEND,
    )
    back = train_job(
        ((*TRAINER, "env"), [{"name": "A"}]),
        ((*TRAINER, "resourcesPerNode"), {"limits": {"cpu": "1", "memory": "1"}}),
        (PATCHES, [patch("node", volumes=[{"name": "d", "nfs": {}}])]),
    )
    assert errors(written, back) == ""


def test_what_go_keeps_apart_is_a_change() -> None:
    assert not same({"runAsUser": 0}, {})
    assert not same({"allowPrivilegeEscalation": False}, {})
    assert not same({"suspend": False}, {"suspend": True})


def test_patches_change_only_around_a_suspension() -> None:
    free = train_job((PATCHES, [KUEUE]))
    bound = [patch("node", "kueue.x-k8s.io/manager", nodeSelector={"pool": "a"})]
    running = train_job((PATCHES, bound))
    assert "suspend the job in the same change" in errors(free, running)
    assert errors(changed(copy.deepcopy(free), [SUSPEND]), running) == ""
    assert errors(running, changed(copy.deepcopy(free), [SUSPEND])) == ""


def test_patches_stay_while_a_job_still_runs() -> None:
    status = {"jobsStatus": [{"name": "node", "active": 1}]}
    old = train_job(SUSPEND, (("status",), status))
    new = train_job(
        SUSPEND, (("status",), status), (PATCHES, [patch("node", nodeSelector={"a": "b"})])
    )
    assert "its job `node` still runs" in errors(old, new)


def test_what_a_patch_gave_to_containers_stays() -> None:
    def given(account: str) -> dict[str, Any]:
        return train_job(SUSPEND, (PATCHES, [patch("node", serviceAccountName=account)]))

    assert "serviceAccountName: Forbidden: what a patch has given once" in errors(
        given("a"), given("b")
    )
    assert errors(given("a"), train_job(SUSPEND, (PATCHES, [patch("node")]))) == ""


def test_change_of_patches_and_a_start_are_judged_with_the_runtime() -> None:
    new = train_job(SUSPEND, (PATCHES, [patch("worker")]))
    assert judge.judge(update(train_job(SUSPEND), new)).job is not None
    assert judge.judge(update(train_job(SUSPEND), train_job())).job is not None
    assert judge.judge(update(train_job(), train_job(SUSPEND))).job is None
    assert judge.judge(create(train_job())).job is not None


def test_update_of_labels_is_never_refused() -> None:
    bad = train_job(((*TRAINER, "numNodes"), 0))
    labelled = changed(copy.deepcopy(bad), [(("metadata", "labels"), {"a": "b"})])
    assert judge.judge(update(bad, labelled)) == judge.Verdict()
    assert judge.judge(update(bad, changed(copy.deepcopy(bad), [SUSPEND]))).errors == ()


def test_runtime_is_judged_when_it_changes() -> None:
    bad = runtime((("spec", "mlPolicy", "numNodes"), 0))
    assert judge.judge_runtime(create(bad)).errors
    assert judge.judge_runtime(update(bad, bad)).errors == ()
    assert judge.judge_runtime(update(runtime(), bad)).errors
