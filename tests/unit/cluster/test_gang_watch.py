"""What the watch over gangs takes for a fault, on events written by hand."""

from __future__ import annotations

from tests.e2e.gangs import JOB, ROLE, Judge, Seen, seen

ROLES = ("worker", "launcher")


def bound(pod: str, at: float = 0.0, *, runs: bool = False, gone: bool = False) -> Seen:
    role = "launcher" if pod == "l" else "worker"
    return Seen(at, "pi", role, pod, bound=True, runs=runs, gone=gone)


def judged(*events: Seen, until: float = 0.0, members: int = 3, strict: bool = True) -> list[str]:
    judge = Judge(members, ROLES, strict=strict)
    for event in events:
        judge.see(event)
    return judge.ended(until)


def test_a_gang_that_is_bound_together_is_no_fault_however_it_ends() -> None:
    began = [bound("a"), bound("b", 1), bound("l", 2)]
    ended = [bound("a", 90, runs=True), bound("l", 99, gone=True), bound("a", 200, gone=True)]
    assert judged(*began, *ended, until=900) == []


def test_a_pod_that_runs_before_all_have_a_node_is_one() -> None:
    (said,) = judged(bound("a"), bound("b"), bound("a", 1, runs=True))
    assert said == "pi: a runs, and 2 of 3 pods have a node"
    assert judged(bound("a"), bound("a", 1, runs=True), strict=False) == []


def test_a_gang_in_part_may_stay_for_ten_seconds_only() -> None:
    assert judged(bound("a"), bound("a", 9, gone=True), until=99) == []
    (said,) = judged(bound("a"), until=30)
    assert said == "pi: placed in part (1 of 3) for 30.0 s"
    assert len(judged(bound("a"), bound("b", 11), bound("l", 12), until=99)) == 1


def test_of_late_launchers_the_workers_alone_are_the_gang() -> None:
    judge = Judge(2, ("worker",))
    for event in (bound("a"), bound("b", 1), bound("l", 50)):
        judge.see(event)
    assert judge.ended(99) == []
    assert judge.gangs["pi"].wholes == 1


def test_a_pod_that_has_ended_holds_no_place() -> None:
    labels = {JOB: "pi", ROLE: "worker"}
    pod = {"metadata": {"name": "a", "labels": labels}, "spec": {"nodeName": "n"}}
    events = {
        phase: seen({"type": "MODIFIED", "object": {**pod, "status": {"phase": phase}}}, 1.0)
        for phase in ("Pending", "Running", "Succeeded", "Failed")
    }
    assert {phase: one and (one.runs, one.gone) for phase, one in events.items()} == {
        "Pending": (False, False),
        "Running": (True, False),
        "Succeeded": (False, True),
        "Failed": (False, True),
    }
    assert seen({"type": "ADDED", "object": {"metadata": {"name": "x"}, "status": {}}}, 1.0) is None
