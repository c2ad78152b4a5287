"""What holds for every job, whatever happens to it and wherever its controller crashes (CTL-3)."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.mpijob.decide import decide
from mpi_trainer.decide.mpijob.decision import MPIJobDecision
from tests.unit.decide.mpijob.jobs import make_job, with_policy, with_workers
from tests.unit.decide.mpijob.world import EVERY_STEP, World

Fault = tuple[str, str | float | bool | None]

NAMES = ("pi-launcher", "pi-worker-0", "pi-worker-1", "pi-worker-2")
WHOLE_PASS: Fault = ("reconcile", float(EVERY_STEP))
PEACE: tuple[Fault, ...] = (
    *(WHOLE_PASS for _ in range(6)),
    *(("reconcile", float(steps)) for steps in range(7)),
    *(("run", name) for name in NAMES),
    *(("tick", seconds) for seconds in (0.5, 1.0, 5.0)),
    ("suspend", True),
    ("suspend", False),
    ("reap", None),
    ("reap", None),
)
TROUBLE: tuple[Fault, ...] = (
    *PEACE,
    *((what, name) for what in ("fail", "exit", "delete", "late") for name in NAMES),
    *(("tick", seconds) for seconds in (70.0, -2.0, -3600.0)),
    *(("replicas", float(count)) for count in (1, 2, 3)),
)


@st.composite
def jobs(draw: st.DrawFn) -> MPIJob:
    limit = draw(st.sampled_from([0, 1, 2, None]))
    return make_job(
        draw(st.integers(0, 3)),
        backoff_limit=limit,
        suspend=draw(st.booleans()),
        clean_pod_policy=draw(st.sampled_from([None, "None", "Running", "All"])),
        ttl_seconds_after_finished=draw(st.sampled_from([None, None, 0, 60])),
        active_deadline_seconds=draw(st.sampled_from([None, None, 90, 2**63 - 1])),
        timeout=draw(st.sampled_from([None, None, 30])),
        launcher_creation_policy=draw(st.sampled_from([None, "AtStartup", "WaitForWorkersReady"])),
    )


def happens(world: World, what: str, detail: str | float | bool | None) -> None:
    """One thing that happens to a job. Whoever deletes its launcher does so while it runs."""
    match detail:
        case str(name):
            _to_a_pod(world, what, name)
        case bool(wanted):
            world.job = with_policy(world.job, suspend=wanted)
        case float(number) if what == "reconcile":
            decide_at(world, int(number))
        case float(number) if what == "replicas":
            world.job = with_workers(world.job, int(number))
        case float(number):
            world.tick(number)
        case _:
            world.reap()


def _to_a_pod(world: World, what: str, name: str) -> None:
    if what == "run":
        world.run(name)
    elif what == "exit":
        world.end(name, 0)
    elif what == "delete":
        if "worker" in name or c.holds(world.job.status.conditions, c.RUNNING):
            world.change(name, terminating=True)
    elif what == "fail":
        world.end(name, 1)
    else:  # a decision is carried out late, and twice
        observed, job = world.observed(), world.job
        decision = decide(job, observed, world.now)
        world.end(name, 1)
        for _ in range(2):
            world.carry_out(decision, observed, job, EVERY_STEP)


def decide_at(world: World, crash: int) -> None:
    before, told = world.job, len(world.events)
    over = world.finished
    again = decide(world.job, world.observed(), world.now)
    decision = world.reconcile(crash)
    assert decision == again, "the same pass decides the same"
    assert not decision.events or decision.status != before.status
    assert decision.requeue_after is None or decision.requeue_after >= timedelta(0)
    assert len(set(decision.stop)) == len(decision.stop)
    assert not (over and not world.finished), "a finished job never un-finishes"
    assert len(world.events) >= told
    holds_everywhere(world)


def holds_everywhere(world: World) -> None:
    record, conditions = world.record, world.job.status.conditions
    limit = world.job.spec.run_policy.backoff_limit
    attempts = [f.attempt for f in record.failures]
    assert len(attempts) <= (6 if limit is None else limit) + 1
    assert attempts == sorted(set(attempts)), "an attempt fails once"
    assert all(n <= 1 for n in world.launches.values()), "an attempt has one launcher"
    gone = range(1, record.attempt)
    assert all(a in attempts or world.launches[a] for a in gone), "no attempt is skipped"
    ends = [e for e in world.events if e == "MPIJobSucceeded"]
    assert len(ends) <= 1
    if world.finished:
        assert not c.holds(conditions, c.RUNNING)
        assert not c.holds(conditions, c.RESTARTING)
        assert world.job.status.completion_time is not None
    if c.holds(conditions, c.SUSPENDED):
        assert world.job.status.start_time is None


def waits_for_something(world: World, decision: MPIJobDecision) -> bool:
    policy = world.job.spec.run_policy
    alive = any(not p.ended for p in world.pods.values())
    return bool(
        world.deleted or world.finished or policy.suspend or decision.requeue_after or alive
    )


def lives_on(world: World) -> None:
    """No more faults: the job is resumed, its pods run, its launcher returns 0."""
    world.job = with_policy(world.job, suspend=False)
    for _ in range(60):
        decision = world.settle()
        assert waits_for_something(world, decision), decision
        holds_everywhere(world)
        if world.deleted or (world.finished and decision.requeue_after is None):
            return
        pending = [n for n, p in world.pods.items() if p.phase == "Pending"]
        up = world.pods.get("pi-launcher")
        if decision.requeue_after is not None and (world.finished or not world.pods):
            world.now += decision.requeue_after
        elif pending:
            for name in pending:
                world.run(name)
        elif up is not None and up.phase == "Running":
            world.end(up.name, 0)
        else:
            assert decision.requeue_after is not None
            world.now += decision.requeue_after
    raise AssertionError(f"does not end: {world.job.status} {world.record} {world.pods}")


@settings(max_examples=60)
@given(jobs(), st.lists(st.sampled_from(TROUBLE), max_size=40))
def test_a_job_in_trouble_keeps_its_promises_and_ends(job: MPIJob, trouble: list[Fault]) -> None:
    """CTL-3, CTL-11."""
    world = World(job)
    for what, detail in trouble:
        happens(world, what, detail)
    lives_on(world)


@settings(max_examples=60)
@given(jobs(), st.lists(st.sampled_from(PEACE), max_size=40))
def test_crashes_and_suspensions_alone_never_fail_a_job(job: MPIJob, peace: list[Fault]) -> None:
    """CTL-3: what the controller does to itself costs the job nothing."""
    world = World(with_policy(job, active_deadline_seconds=None, scheduling_policy=None))
    for what, detail in peace:
        happens(world, what, detail)
    lives_on(world)
    assert world.deleted or c.holds(world.job.status.conditions, c.SUCCEEDED)
    assert world.record.failures == ()


@settings(max_examples=40)
@given(jobs(), st.lists(st.sampled_from(TROUBLE), max_size=30))
def test_every_quiet_moment_is_a_fixed_point(job: MPIJob, trouble: list[Fault]) -> None:
    world = World(job)
    for what, detail in trouble:
        happens(world, what, detail)
        quiet = world.settle()
        if not world.deleted:
            assert world.reconcile() == quiet
            assert quiet.record == world.record
            assert quiet.status == world.job.status
            assert waits_for_something(world, quiet)
