"""What may change in a job, and when; Kueue's own edits always may (AC-12)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.webhook.mpijob import changes
from tests.unit.api.building import POD, POLICY
from tests.unit.webhook.test_quota import made

STARTED = MPIJobStatus(start_time=datetime(2026, 1, 1, tzinfo=UTC))
SUSPEND: Path = (*POLICY, "suspend")
SELECTOR: tuple[Path, Any] = ((*POD, "nodeSelector"), {"pool": "a"})


def running(*edits: tuple[Path, Any]) -> MPIJob:
    return replace(mpijob_with_defaults(made(*edits)), status=STARTED)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("spec", "slotsPerWorker"), 4, "spec.slotsPerWorker: Forbidden: 4: is 1 in the pods"),
        (("spec", "mpiImplementation"), "Intel", "spec.mpiImplementation: Forbidden"),
        (("spec", "sshAuthMountPath"), "/home/x/.ssh", "spec.sshAuthMountPath: Forbidden"),
        (("spec", "runLauncherAsWorker"), True, "spec.runLauncherAsWorker: Forbidden"),
        (*SELECTOR, "spec.mpiReplicaSpecs.Worker: Forbidden"),
        ((*POLICY, "managedBy"), "kueue.x-k8s.io/multikueue", "managedBy: Forbidden"),
    ],
)
def test_what_the_pods_are_made_of_is_frozen_while_they_exist(
    path: Path, value: Any, field: str
) -> None:
    found = changes.errors(running(), running((path, value)))
    assert len(found) == 1
    assert field in str(found[0])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (SUSPEND, True),
        ((*POLICY, "activeDeadlineSeconds"), 60),
        ((*POLICY, "ttlSecondsAfterFinished"), 0),
        ((*POLICY, "cleanPodPolicy"), "All"),
        ((*POLICY, "backoffLimit"), 9),
        (("spec", "mpiReplicaSpecs", "Worker", "replicas"), 5),
    ],
)
def test_policies_and_the_number_of_workers_may_change_at_any_time(path: Path, value: Any) -> None:
    assert not changes.errors(running(), running((path, value)))


def test_a_queue_may_place_a_job_as_it_resumes_it_and_undo_that_as_it_suspends_it() -> None:
    waiting, placed = running((SUSPEND, True)), running(SELECTOR)
    assert not changes.errors(waiting, placed)
    assert not changes.errors(placed, waiting)


def test_nothing_is_frozen_before_the_start_but_the_manager() -> None:
    fresh = mpijob_with_defaults(made())
    assert not changes.errors(fresh, mpijob_with_defaults(made(SELECTOR)))
    managed = mpijob_with_defaults(made(((*POLICY, "managedBy"), "kueue.x-k8s.io/multikueue")))
    assert "a job keeps its manager, the MPI operator" in str(changes.errors(fresh, managed)[0])
