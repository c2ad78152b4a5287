"""What clients of the public trainer wait for and do, on a real API server."""

from __future__ import annotations

import json
import time

from mpi_trainer.controller.trainjob.status_throttle import FIRST_COUNTS
from tests.api.admin import Admin, Object
from tests.api.running import Controller
from tests.api.trainjob_lab import (
    SETS,
    TRAIN,
    admin,
    api_server,
    controller,
    job_of,
    job_set,
    submit,
    train_job,
    until,
)
from tests.cluster import eventually

__all__ = ["admin", "api_server", "controller"]


NONE = {"succeeded": 0, "ready": 0, "failed": 0, "active": 0, "suspended": 0}


def count_node(admin: Admin, **numbers: int) -> None:
    """JobSet counts the Jobs of `node`."""
    status = {"replicatedJobsStatus": [{"name": "node", **NONE, **numbers}]}
    admin.patch(f"{SETS}/jobsets/pi/status", {"status": status})


def told_of_node(admin: Admin) -> Object:
    found: list[Object] = job_of(admin).get("status", {}).get("jobsStatus", [])
    return found[0] if found else NONE


def test_a_client_that_waits_for_the_first_active_job_is_not_kept_waiting(
    admin: Admin, controller: Controller
) -> None:
    """U-2: a short job has ended before counts would be due."""
    submit(admin, train_job(runtime="plain"))
    job_set(admin)
    began = time.monotonic()
    count_node(admin, active=1)
    eventually(
        "active", lambda: told_of_node(admin)["active"] == 1, FIRST_COUNTS.pause.total_seconds()
    )
    assert time.monotonic() - began < FIRST_COUNTS.pause.total_seconds() / 2


def test_counts_are_not_stale_after_a_job_is_resumed(admin: Admin, controller: Controller) -> None:
    """U-8."""
    submit(admin, train_job(runtime="plain", suspend=True))
    job_set(admin)
    count_node(admin, suspended=1)
    eventually("suspended", lambda: told_of_node(admin)["suspended"] == 1)
    admin.patch(f"{TRAIN}/trainjobs/pi", {"spec": {"suspend": False}})
    eventually("resumed", lambda: not job_set(admin)["spec"].get("suspend"))
    count_node(admin, active=1)
    eventually("active", lambda: told_of_node(admin)["active"] == 1)
    assert told_of_node(admin)["suspended"] == 0


def test_a_client_changes_what_it_has_just_created(admin: Admin, controller: Controller) -> None:
    """U-3, for TrainJobs: a whole-object update, guarded by the version that creation returned."""
    refused = []
    for number in range(10):
        made = submit(admin, train_job(f"new-{number}", runtime="plain", suspend=True))
        time.sleep(0.1)  # as long as a client takes
        made["metadata"]["labels"] = {"team": "a"}
        path = f"/{TRAIN}/namespaces/{admin.namespace}/trainjobs/new-{number}"
        code, _ = admin.attempt("PUT", path, json.dumps(made).encode())
        refused += [number] if code == 409 else []
    assert not refused
    until(admin, "Suspended", name="new-9")
