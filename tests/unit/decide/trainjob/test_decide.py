"""The life of a TrainJob, decided: when it has a JobSet, when it rests, and what became of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api.effective.combine import Effective, effective
from mpi_trainer.api.kinds.annotations import CLEAN, TTL
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.runtime import (
    JobSetTemplate,
    MLPolicy,
    MPIPolicy,
    Runtime,
    RuntimeSpec,
    TorchPolicy,
)
from mpi_trainer.api.kinds.trainjob import (
    ReplicatedJobStatus,
    RuntimeRef,
    Trainer,
    TrainJob,
    TrainJobCondition,
    TrainJobSpec,
)
from mpi_trainer.decide.observed import End, Observed, ObservedPod, ObservedRank
from mpi_trainer.decide.trainjob import status_annotations
from mpi_trainer.decide.trainjob.decide import after_end, decide, needs_all_pods, refused, stalled
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.decide.trainjob.observed import ObservedJobSet, ObservedTrainJob
from mpi_trainer.decide.trainjob.status import find
from mpi_trainer.layout.agent.summary import OnHost, Summary, ranks

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
UP = ObservedJobSet("set", rendered="a")
ALL_UP = replace(
    UP, jobs=tuple(ReplicatedJobStatus(name=n, active=1, ready=1) for n in ("node", "launcher"))
)
REST = replace(UP, suspended=True)
DONE = TrainJobCondition(
    type="Completed",
    status="True",
    reason="AllJobsCompleted",
    message="jobset completed successfully",
    last_transition_time=T0,
)
BROKEN = replace(DONE, type="Failed", reason="FailedJobs", message="jobset failed")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def make_job(annotations: dict[str, str] | None = None, **spec: Any) -> TrainJob:
    meta = ObjectMeta(
        name="pi",
        namespace="ns",
        uid="u",
        creation_timestamp=T0,
        annotations=annotations or {},
    )
    trainer = Trainer(num_nodes=2, command=("mpirun", "x"))
    ref = RuntimeRef(name="r", kind="ClusterTrainingRuntime")
    return TrainJob(metadata=meta, spec=TrainJobSpec(runtime_ref=ref, trainer=trainer, **spec))


def whole(job: TrainJob, torch: bool = False) -> Effective:
    def replicated(name: str, labels: dict[str, str]) -> dict[str, Any]:
        pod = {"spec": {"containers": [{"name": "node", "image": "x"}]}}
        return {
            "name": name,
            "template": {"metadata": {"labels": labels}, "spec": {"template": pod}},
        }

    trainer = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    jobs = [replicated("node", {}), replicated("launcher", trainer)]
    policy = MLPolicy(mpi=MPIPolicy(mpi_implementation="OpenMPI"))
    if torch:
        jobs, policy = [replicated("node", trainer)], MLPolicy(torch=TorchPolicy())
    spec = RuntimeSpec(ml_policy=policy, template=JobSetTemplate(spec={"replicatedJobs": jobs}))
    runtime = Runtime(kind="ClusterTrainingRuntime", metadata=ObjectMeta(name="r"), spec=spec)
    return effective(job, runtime)


def decide_at(
    job: TrainJob, now: datetime = T0, torch: bool = False, **observed: Any
) -> TrainJobDecision:
    return decide(job, whole(job, torch), ObservedTrainJob(rendered="a", **observed), now)


def pod(name: str, phase: Any = "Running", **more: Any) -> ObservedPod:
    role: Any = "launcher" if "launcher" in name else "worker"
    return ObservedPod(name=name, role=role, uid=name, phase=phase, **more)


def pods(phase: Any = "Running") -> tuple[ObservedPod, ...]:
    return tuple(pod(n, phase) for n in ("pi-launcher-0-0", "pi-node-0-0", "pi-node-0-1"))


def stored(job: TrainJob, step: TrainJobDecision) -> TrainJob:
    """The job after the step's status and annotations were written."""
    notes = status_annotations.changes(
        status_annotations.read(job.metadata.annotations), step.annotations
    )
    merged = {**job.metadata.annotations, **notes}
    kept = {name: text for name, text in merged.items() if text is not None}
    return replace(job, status=step.status, metadata=replace(job.metadata, annotations=kept))


def test_a_new_job_gets_a_jobset_and_says_nothing_yet() -> None:
    step = decide_at(make_job())
    assert step.make
    assert step.status.conditions == ()
    assert step.annotations == status_annotations.StatusAnnotations()


def test_a_suspended_job_gets_one_that_rests() -> None:
    job = make_job(suspend=True)
    step = decide_at(job)
    assert step.make
    ended = find(step.status, "Suspended")
    assert ended is not None
    assert (ended.status, ended.reason) == ("True", "Suspended")
    assert step.annotations.phase == "Suspended"
    again = decide_at(stored(job, step), at(5), job_set=REST)
    assert not again.acts
    assert again.status == step.status


def test_a_running_jobset_is_put_to_rest() -> None:
    assert decide_at(make_job(suspend=True), job_set=UP).suspend is True


@pytest.mark.parametrize(
    ("rendered", "suspend", "renew"),
    [("a", False, False), ("", False, False), ("b", None, True)],
    ids=["the same", "another controller's", "another"],
)
def test_a_job_that_comes_back_goes_on_as_it_should_be(
    rendered: str, suspend: bool | None, renew: bool
) -> None:
    job = stored(make_job(), decide_at(make_job(suspend=True)))
    step = decide_at(job, at(9), job_set=replace(REST, rendered=rendered))
    assert (step.suspend, step.renew) == (suspend, renew)
    ended = find(step.status, "Suspended")
    assert ended is not None
    assert (ended.status, ended.reason, ended.last_transition_time) == ("False", "Resumed", at(9))


def test_a_job_that_comes_back_waits_for_the_pods_of_before() -> None:
    """Their ends would count as failures of the JobSet that goes on."""
    job = stored(make_job(), decide_at(make_job(suspend=True)))
    first, *_ = pods()
    going = Observed((replace(first, phase="Failed", terminating=True),))
    step = decide_at(job, at(9), job_set=REST, pods=going)
    assert (step.suspend, step.renew, step.annotations.cause) == (None, False, "")
    assert step.requeue_after is not None
    late = decide_at(stored(job, step), at(30), job_set=REST, pods=going)
    assert "has not ended yet" in late.annotations.cause
    kept = Observed((replace(first, phase="Failed"),))
    assert decide_at(stored(job, late), at(31), job_set=REST, pods=kept).suspend is False


def test_a_job_runs_once_jobset_says_so_of_launcher_and_nodes() -> None:
    job = make_job()
    few = replace(
        UP,
        jobs=(
            ReplicatedJobStatus(name="node", active=1, ready=1),
            ReplicatedJobStatus(name="launcher"),
        ),
    )
    assert decide_at(job, job_set=UP).annotations.phase == ""
    assert decide_at(job, job_set=few).annotations.phase == ""
    step = decide_at(job, at(4), job_set=ALL_UP)
    assert step.annotations.phase == "Running"
    assert step.annotations.start_time == "2026-03-01T12:00:04Z"
    later = decide_at(stored(job, step), at(9), job_set=few)
    assert later.annotations == step.annotations
    swift = (
        ReplicatedJobStatus(name="node", ready=1),
        ReplicatedJobStatus(name="launcher", succeeded=1),
    )
    assert decide_at(job, job_set=replace(UP, jobs=swift)).annotations.phase == "Running"


def test_a_job_that_was_not_seen_to_run_has_run_since_its_launcher_began() -> None:
    launcher = pod("pi-launcher-0-0", "Succeeded", started=at(2), end=End(code=0))
    ended = replace(UP, completed=DONE)
    late = decide_at(make_job(), at(9), job_set=ended, pods=Observed((launcher,)))
    assert late.annotations.start_time == "2026-03-01T12:00:02Z"
    node = pod("pi-node-0-0", "Failed", started=at(2), end=End(code=1))
    never = decide_at(make_job(), at(9), job_set=replace(UP, failed=BROKEN), pods=Observed((node,)))
    assert never.annotations.start_time == ""


def test_counts_are_the_jobset_s_and_nothing_is_active_without_it() -> None:
    counts = (
        ReplicatedJobStatus(name="node", active=1, ready=1),
        ReplicatedJobStatus(name="launcher", succeeded=1),
    )
    step = decide_at(make_job(), job_set=replace(UP, jobs=counts))
    assert step.status.jobs_status == counts
    gone = decide_at(stored(make_job(), step), at(1))
    assert [(one.active, one.ready) for one in gone.status.jobs_status] == [(0, 0), (0, 0)]


def test_nothing_is_active_of_a_job_that_has_ended() -> None:
    """How its Jobs ended stays, whatever JobSet makes of them; so it is written once."""
    counts = (
        ReplicatedJobStatus(name="node", active=1, ready=1),
        ReplicatedJobStatus(name="launcher", succeeded=1),
    )
    ended = replace(UP, completed=DONE, jobs=counts)
    step = decide_at(make_job(), at(1), torch=True, job_set=ended)
    assert step.status.jobs_status == (ReplicatedJobStatus(name="node"), counts[1])
    assert after_end(stored(make_job(), step), ended, at(2)).status == step.status


def test_a_job_says_what_it_waits_for_after_ten_seconds() -> None:
    stuck = Observed(
        (pod("pi-node-0-0", "Pending", scheduled=False, why="0/3 nodes are available"),)
    )
    early = decide_at(make_job(), at(3), job_set=UP, pods=stuck)
    assert early.annotations.cause == ""
    assert early.requeue_after == timedelta(seconds=7)
    step = decide_at(make_job(), at(10), job_set=UP, pods=stuck)
    assert step.annotations.cause == (
        "1 of 1 pods have no node: 0/3 nodes are available (pi-node-0-0)"
    )
    assert step.annotations.phase == "Pending"


def test_a_job_that_waits_for_a_pod_to_be_ready_says_so() -> None:
    """JobSet starts no launcher before; the pod itself may look well."""
    nodes = Observed((pod("pi-node-0-0", ready=True), pod("pi-node-0-1")))
    step = decide_at(make_job(), at(10), job_set=UP, pods=nodes)
    assert step.annotations.cause == "1 of 2 pods run and are not ready (pi-node-0-1)"


def test_a_job_that_waits_is_looked_at_ever_more_seldom() -> None:
    waits = [decide_at(make_job(), at(s), job_set=UP).requeue_after for s in (10, 60, 3600)]
    assert waits == [timedelta(seconds=10), timedelta(seconds=15), timedelta(minutes=5)]


@pytest.mark.parametrize(
    ("job_set", "seconds", "needed"),
    [
        (None, 60, False),
        (UP, 9, False),
        (UP, 10, True),
        (ALL_UP, 60, False),
        (replace(UP, completed=DONE), 60, True),
        (replace(UP, failed=BROKEN), 60, True),
        (REST, 0, True),
    ],
    ids=["no JobSet", "starting", "slow", "running", "completed", "failed", "going on"],
)
def test_pods_that_have_not_ended_are_looked_at_only_where_they_matter(
    job_set: ObservedJobSet | None, seconds: float, needed: bool
) -> None:
    job = make_job()
    assert needs_all_pods(job, whole(job), ObservedTrainJob(job_set), at(seconds)) is needed


def test_a_job_whose_jobset_changes_goes_forward() -> None:
    """Where many start at once, each takes its time, and asking for pods would take more of it."""
    job, moved = make_job(), replace(UP, since=at(55))
    assert not needs_all_pods(job, whole(job), ObservedTrainJob(moved), at(60))
    assert decide_at(job, at(60), job_set=moved).requeue_after == timedelta(seconds=5)
    assert needs_all_pods(job, whole(job), ObservedTrainJob(moved), at(65))


def test_a_job_that_ran_is_not_slow_to_start() -> None:
    job = stored(make_job(), decide_at(make_job(), job_set=ALL_UP))
    assert not needs_all_pods(job, whole(job), ObservedTrainJob(UP), at(60))
    assert decide_at(job, at(60), job_set=UP).requeue_after is None


def complete(ranks: tuple[ObservedRank, ...] = (), **more: Any) -> TrainJobDecision:
    ended = pod("pi-launcher-0-0", "Succeeded", end=End(code=0))
    observed = Observed((ended,), ranks)
    return decide_at(make_job(), at(1), job_set=replace(UP, completed=DONE), pods=observed, **more)


def rank(number: int, where: str, code: int | None = 0) -> ObservedRank:
    end = None if code is None else End(code=code)
    return ObservedRank(number, 2, where, end=end, ended=1.0)


def test_a_complete_jobset_is_a_complete_job() -> None:
    step = complete((rank(0, "pi-node-0-0"), rank(1, "pi-node-0-1")), placement='{"x":"0"}')
    ended = find(step.status, "Complete")
    assert ended is not None
    assert (ended.reason, ended.message) == ("AllJobsCompleted", "jobset completed successfully")
    assert step.annotations.phase == "Succeeded"
    assert step.annotations.completion_time == "2026-03-01T12:00:01Z"
    assert step.annotations.placement == '{"x":"0"}'


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        ((rank(0, "pi-node-0-0"), rank(1, "pi-node-0-1", 9)), "RankFailed"),
        ((rank(0, "pi-node-0-0"), rank(1, "pi-node-0-1", None)), "RanksLost"),
        ((rank(0, "pi-launcher-0-0"), rank(1, "pi-launcher-0-0")), "PlacementWrong"),
    ],
)
def test_a_launcher_that_returned_0_proves_no_success(
    ranks: tuple[ObservedRank, ...], reason: str
) -> None:
    """The JobSet is complete; the ranks say otherwise."""
    ended = find(complete(ranks).status, "Failed")
    assert ended is not None
    assert ended.reason == reason


@pytest.mark.parametrize("seconds", [1, 6, 3600])
def test_a_completed_jobset_is_believed_only_once_its_pods_were_asked_for(seconds: float) -> None:
    """C-11: however late it is, and by whose clock: evidence is a list, not a time-out."""
    job, ended = make_job(), replace(UP, completed=DONE)
    unseen = decide_at(job, at(seconds), job_set=ended)
    assert find(unseen.status, "Complete") is None
    assert unseen.requeue_after is not None
    step = decide_at(job, at(seconds), job_set=ended, all_pods=True)
    assert find(step.status, "Complete") is not None
    assert [event.reason for event in step.events] == ["EvidenceMissing"]


def test_evidence_that_was_watched_is_not_asked_for_again() -> None:
    job, ended = make_job(), Observed((pod("pi-launcher-0-0", "Succeeded", end=End(code=0)),))
    observed = ObservedTrainJob(replace(UP, completed=DONE), ended)
    assert not needs_all_pods(job, whole(job), observed, at(60))
    bad = Observed((pod("pi-node-0-1", "Failed", end=End(code=9)),))
    assert not needs_all_pods(
        job, whole(job), ObservedTrainJob(replace(UP, failed=BROKEN), bad), at(60)
    )


def test_who_failed_is_asked_for_once() -> None:
    """C-11"""
    failed = replace(UP, failed=BROKEN)
    unseen = decide_at(make_job(), at(60), job_set=failed)
    assert find(unseen.status, "Failed") is None
    assert unseen.requeue_after is not None
    ended = find(decide_at(make_job(), at(60), job_set=failed, all_pods=True).status, "Failed")
    assert ended is not None
    assert ended.message == "jobset failed"


@pytest.mark.parametrize("suspend", [False, True])
def test_a_jobset_that_ended_and_is_being_deleted_has_ended(suspend: bool) -> None:
    """C-2: its time to live was over before we looked; the job is not to be run again."""
    ended = pod("pi-launcher-0-0", "Succeeded", end=End(code=0), terminating=True)
    observed, going = Observed((ended,)), replace(UP, terminating=True)
    job = make_job(suspend=suspend)
    step = decide_at(job, at(1), job_set=replace(going, completed=DONE), pods=observed)
    assert find(step.status, "Complete") is not None
    assert not decide_at(stored(job, step), at(2)).acts
    step = decide_at(job, at(1), job_set=replace(going, failed=BROKEN), all_pods=True)
    assert find(step.status, "Failed") is not None
    assert not decide_at(stored(job, step), at(2)).acts


def test_ranks_count_also_of_a_launcher_that_is_being_deleted() -> None:
    """C-2, C-11"""
    ended = pod("pi-launcher-0-0", "Succeeded", end=End(code=0), terminating=True)
    observed = Observed((ended,), (rank(0, "pi-node-0-0", 9),))
    going = replace(UP, terminating=True, completed=DONE)
    failed = find(decide_at(make_job(), at(1), job_set=going, pods=observed).status, "Failed")
    assert failed is not None
    assert failed.reason == "RankFailed"


def test_a_failure_tells_the_jobset_s_reason_and_the_pod_to_blame() -> None:
    bad = pod("pi-node-0-1", "Failed", end=End(code=137, reason="OOMKilled"))
    step = decide_at(
        make_job(), job_set=replace(UP, failed=BROKEN), pods=Observed((*pods()[:2], bad))
    )
    ended = find(step.status, "Failed")
    assert ended is not None
    cause = "Worker pi-node-0-1 ended with exit code 137 (OOMKilled)"
    assert (ended.reason, ended.message) == ("FailedJobs", f"jobset failed; {cause}")
    assert step.annotations.cause == cause


def test_the_deadline_counts_from_creation_or_from_the_last_resumption() -> None:
    job = make_job(active_deadline_seconds=10)
    assert decide_at(job, at(4), job_set=UP).requeue_after == timedelta(seconds=6)
    ended = find(decide_at(job, at(10), job_set=UP).status, "Failed")
    assert ended is not None
    assert ended.reason == "DeadlineExceeded"
    resumed = stored(job, decide_at(stored(job, decide_at(replace_suspend(job, True))), at(8)))
    assert find(decide_at(resumed, at(17), job_set=UP).status, "Failed") is None
    assert find(decide_at(resumed, at(18), job_set=UP).status, "Failed") is not None


def replace_suspend(job: TrainJob, suspend: bool) -> TrainJob:
    return replace(job, spec=replace(job.spec, suspend=suspend))


def ended_job(**observed: Any) -> TrainJob:
    job = make_job()
    step = decide_at(job, at(1), torch=True, job_set=replace(UP, completed=DONE), **observed)
    return stored(job, step)


def test_an_ended_job_stays_as_it_is_and_needs_no_runtime() -> None:
    """Also once its JobSet is gone: it is not made again."""
    job = ended_job()
    step = after_end(job, None, at(3600))
    assert not step.acts
    assert step.status.conditions == job.status.conditions
    assert step.requeue_after is None


def test_what_still_runs_of_an_ended_job_goes() -> None:
    assert after_end(ended_job(), UP, at(2)).remove
    assert not after_end(ended_job(), replace(UP, completed=DONE), at(2)).remove


@pytest.mark.parametrize("whose", ["job", "runtime"])
def test_an_ended_job_is_deleted_after_its_time(whose: str) -> None:
    """AC-4: the runtime's wish becomes the job's own at its end."""
    asked = {TTL: "60"}
    job = ended_job(runtime_annotations=asked) if whose == "runtime" else ended_job()
    if whose == "job":
        notes = {**job.metadata.annotations, **asked}
        job = replace(job, metadata=replace(job.metadata, annotations=notes))
    assert after_end(job, None, at(31)).requeue_after == timedelta(seconds=30)
    assert after_end(job, None, at(61)).delete_job


def test_an_ended_job_gives_its_pods_back_where_that_is_wished() -> None:
    job = ended_job(runtime_annotations={CLEAN: "All"})
    assert after_end(job, replace(UP, completed=DONE), at(2)).remove


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", "example.org/other"])
def test_another_s_job_is_left_alone(manager: str) -> None:
    step = decide_at(make_job(managed_by=manager))
    assert not step.acts
    assert step.status.conditions == ()


def test_a_job_that_cannot_be_carried_out_fails_with_the_words_why() -> None:
    ended = find(refused(make_job(), "TrainingRuntimeNotSupported", "no", T0).status, "Failed")
    assert ended is not None
    assert (ended.reason, ended.message) == ("TrainingRuntimeNotSupported", "no")


def test_a_job_without_its_runtime_waits_and_may_still_be_suspended() -> None:
    step = stalled(make_job(), "there is no runtime", T0)
    assert (step.annotations.phase, step.annotations.cause) == ("Pending", "there is no runtime")
    held = stalled(make_job(suspend=True), "there is no runtime", T0)
    assert find(held.status, "Suspended") is not None


def test_placement_is_ranks_by_host_in_ranges() -> None:
    summary = Summary(hosts=(OnHost("a", ranks("0-2,8")), OnHost("b", ranks("3"))))
    assert json.loads(status_annotations.placement(summary)) == {"a": "0-2,8", "b": "3"}
    assert status_annotations.placement(Summary()) == ""


def test_a_torch_job_runs_without_a_launcher() -> None:
    ready = replace(UP, jobs=(ReplicatedJobStatus(name="node", active=1, ready=1),))
    assert decide_at(make_job(), torch=True, job_set=ready).annotations.phase == "Running"
