"""What the objects of a job say, in the terms of `decide`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.annotations import WORKERS
from mpi_trainer.controller.mpijob.observe import observe, owned_objects
from mpi_trainer.controller.objects import Job, Pod
from mpi_trainer.decide.observed import ObservedPod, Record
from tests.unit.controller.objects import batch_job, ended, launcher, mpijob, owner, worker

GONE = {"deletionTimestamp": "2026-03-01T12:01:00Z"}


def seen(*things: Pod | Job, record: Record | None = None) -> dict[str, ObservedPod]:
    pods = [t for t in things if isinstance(t, Pod)]
    jobs = [t for t in things if isinstance(t, Job)]
    mine = owned_objects(mpijob(), pods, jobs)
    return {p.name: p for p in observe(mpijob(), record or Record(), mine).seen.pods}


def test_a_worker_has_its_index_and_its_attempt() -> None:
    one = seen(worker(11, attempt=3))["pi-worker-11"]
    assert (one.index, one.attempt, one.phase, one.role) == (11, 3, "Running", "worker")


@pytest.mark.parametrize("state", ["running", "terminated"])
def test_a_pod_began_when_its_container_did(state: str) -> None:
    began = {"name": "main", "state": {state: {"startedAt": "2026-03-01T12:00:07Z"}}}
    one = seen(worker(containerStatuses=[began]))["pi-worker-0"]
    assert one.started == datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC)
    assert seen(worker())["pi-worker-0"].started is None


@pytest.mark.parametrize("text", ["", "x", "-1", "99999999999999"])
def test_an_attempt_that_is_no_number_is_the_first(text: str) -> None:
    strange = worker(annotations={"mpi-trainer.opendatahub.io/attempt": text})
    assert seen(strange)["pi-worker-0"].attempt == 1


def test_anothers_pods_are_not_seen() -> None:
    assert seen(worker(owner="other"), launcher(), batch_job(holder="other")) == {}


def test_the_launcher_of_the_attempt_has_its_roles_name() -> None:
    old = launcher(name="pi-launcher-a", attempt=1)
    new = launcher(name="pi-launcher-b", attempt=2)
    assert set(seen(old, new, batch_job(), record=Record(attempt=2))) == {
        "pi-launcher-a",
        "pi-launcher",
    }


def test_a_job_without_its_pod_is_a_launcher_that_waits() -> None:
    one = seen(batch_job())["pi-launcher"]
    assert (one.phase, one.scheduled, one.terminating) == ("Pending", False, False)


@pytest.mark.parametrize(("kind", "phase"), [("Failed", "Failed"), ("Complete", "Succeeded")])
def test_a_job_whose_pod_is_gone_tells_how_it_ended(kind: str, phase: str) -> None:
    condition = {"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}
    assert seen(batch_job(conditions=[condition]))["pi-launcher"].phase == phase


def test_a_launcher_whose_job_goes_is_going() -> None:
    assert seen(launcher(), batch_job(metadata=GONE))["pi-launcher"].terminating


def test_a_launcher_outlives_its_job_if_both_were_seen_together() -> None:
    """S-10."""
    before = owned_objects(mpijob(), [launcher()], [batch_job()])
    assert owned_objects(mpijob(), [launcher()], [], before.proof).launchers == (launcher(),)
    orphan = msgspec.structs.replace(
        launcher(), metadata=msgspec.structs.replace(launcher().metadata, owner_references=())
    )
    assert owned_objects(mpijob(), [orphan], [], before.proof).launchers == (orphan,)


def test_a_launcher_first_seen_after_its_job_is_the_jobs_if_the_job_was_known() -> None:
    """S-10: the Job proves its pod even where the pod's watch was late."""
    before = owned_objects(mpijob(), [], [batch_job()])
    assert owned_objects(mpijob(), [launcher()], [], before.proof).launchers == (launcher(),)


@pytest.mark.parametrize("uid", ["job", "old"])
def test_a_launcher_whose_job_nobody_has_seen_is_nobodys(uid: str) -> None:
    """S-10: whatever its labels and annotations say; a user's pod ended another's job so."""
    forged = launcher("Succeeded", annotations={"mpi-trainer.opendatahub.io/job-uid": uid})
    assert seen(forged) == {}
    assert seen(forged, batch_job(uid="another")).keys() == {"pi-launcher"}


def test_a_job_of_the_same_uid_but_another_kind_owns_nothing() -> None:
    """S-10: an owner is a kind of a group and a uid, not a uid alone."""
    ours = owner("MPIJob", "pi", "job")
    for wrong in ({"apiVersion": "example.com/v1"}, {"kind": "TrainJob"}, {"controller": False}):
        false = {"ownerReferences": [{**ours, **wrong}]}
        assert seen(worker(metadata=false), batch_job(metadata=false), launcher()) == {}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"containerStatuses": ended(137, reason="OOMKilled")}, "exit code 137 (OOMKilled)"),
        ({"containerStatuses": ended(1)}, "exit code 1"),
        ({"reason": "Evicted", "message": "disk"}, "unknown end (Evicted)"),
        ({"containerStatuses": [*ended(0), *ended(2, "sidecar")]}, "exit code 2"),
        ({"initContainerStatuses": ended(3, "fetch")}, "exit code 3"),
    ],
    ids=["oom", "plain", "evicted", "sidecar", "init"],
)
def test_a_failed_pod_tells_what_ended_it(status: dict[str, Any], words: str) -> None:
    end = seen(worker(phase="Failed", **status))["pi-worker-0"].end
    assert end is not None
    assert end.text() == words


def test_another_containers_failure_names_it() -> None:
    status = [*ended(0), *ended(2, "sidecar", message="no route")]
    end = seen(worker(phase="Failed", containerStatuses=status))["pi-worker-0"].end
    assert end is not None
    assert end.message == "container sidecar: no route"


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            {
                "node": "",
                "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}],
            },
            "0/3 nodes",
        ),
        (
            {
                "node": "",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "message": "0/3 nodes are available: 3 Insufficient cpu. no new claims to "
                        "deallocate, preemption: 0/3 nodes are available: 3 Preemption is not …",
                    }
                ],
            },
            "0/3 nodes are available: 3 Insufficient cpu",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "main",
                        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}},
                    }
                ]
            },
            "no",
        ),
        ({}, ""),
    ],
    ids=["unplaced", "and nobody gives way", "image", "nothing said"],
)
def test_a_pending_pod_tells_why(status: dict[str, Any], why: str) -> None:
    one = seen(worker(phase="Pending", **status))["pi-worker-0"]
    assert one.why == why
    assert one.waiting == ("ImagePullBackOff" if "containerStatuses" in status else "")
    assert one.scheduled == ("node" not in status)


def test_a_pod_that_the_cluster_takes_is_disrupted() -> None:
    said = {"type": "DisruptionTarget", "status": "True", "message": "Preempted by x"}
    one = seen(worker(conditions=[said], metadata=GONE))["pi-worker-0"]
    assert (one.disrupted, one.terminating, one.why) == (True, True, "Preempted by x")


def test_an_unknown_phase_counts_as_running() -> None:
    assert seen(worker(phase="Unknown"))["pi-worker-0"].phase == "Running"


@pytest.mark.parametrize(
    ("ended_by", "told"),
    [
        ("stuck 1 rank=0 pod=w-0", "rank 0 on w-0 has failed (an exception) and waits"),
        ("command 1", "rank 0 on w-0 raised an exception"),
    ],
)
def test_what_a_program_said_to_the_agent_is_hidden_where_that_is_asked(
    ended_by: str, told: str
) -> None:
    said = f"mpi-agent 2\nlevel full\nended {ended_by}\nraised 0 w-0 a.py:3 Boom: my \x1b[2Jwords\n"
    failed = launcher("Failed", containerStatuses=ended(1, message=said))
    mine = owned_objects(mpijob(), [failed], [batch_job()])
    (hidden,) = observe(mpijob(), Record(), mine, tail=None).seen.pods
    assert hidden.end is not None and hidden.end.message.startswith(told)
    assert "words" not in hidden.end.message and "\x1b" not in hidden.end.message


def test_what_a_program_wrote_is_hidden_where_that_is_asked() -> None:
    failed = launcher("Failed", containerStatuses=ended(1, message="password=x"))
    mine = owned_objects(mpijob(), [failed], [batch_job()])
    (shown,) = observe(mpijob(), Record(), mine).seen.pods
    (hidden,) = observe(mpijob(), Record(), mine, tail=None).seen.pods
    assert shown.end is not None
    assert shown.end.message == "password=[redacted]"
    assert hidden.end is not None
    assert hidden.end.message == ""


def test_a_mark_of_thousands_of_digits_is_no_number() -> None:
    """S-1: users may write annotations of pods, and every look at the job failed."""
    pod = launcher(metadata={"annotations": {WORKERS: "9" * 5000}})
    view = observe(mpijob(), Record(), owned_objects(mpijob(), [pod], [batch_job()]))
    assert view.seen.pods[0].workers is None


def test_a_pod_whose_init_containers_run_waits_for_nothing_of_the_cluster() -> None:
    """W-4: it has its node, its volumes and an image."""
    begun = {"name": "own", "state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}}}
    one = seen(worker(phase="Pending", initContainerStatuses=[begun]))["pi-worker-0"]
    assert one.begun
    assert not seen(worker(phase="Pending"))["pi-worker-0"].begun
