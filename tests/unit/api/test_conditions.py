from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.conditions import Condition, with_condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
RUNNING = Condition(type=conditions.RUNNING, status="True", reason="MPIJobRunning")


def test_new_condition_is_stamped() -> None:
    [found] = with_condition((), RUNNING, NOW)
    assert found.last_update_time == found.last_transition_time == NOW


def test_same_condition_changes_nothing() -> None:
    before = with_condition((), RUNNING, NOW)
    assert with_condition(before, RUNNING, LATER) is before


def test_transition_time_moves_only_with_the_status() -> None:
    before = with_condition((), RUNNING, NOW)
    new = Condition(type=conditions.RUNNING, status="True", reason="Other")
    [found] = with_condition(before, new, LATER)
    assert (found.last_update_time, found.last_transition_time) == (LATER, NOW)
    off = Condition(type=conditions.RUNNING, status="False", reason="Other")
    [found] = with_condition(before, off, LATER)
    assert found.last_transition_time == LATER


def test_state_is_the_last_that_holds_and_ends_come_first() -> None:
    """API-5."""
    assert conditions.state(()) == conditions.CREATED
    running = with_condition((), RUNNING, NOW)
    assert conditions.state(running) == conditions.RUNNING
    assert not conditions.finished(running)
    failed = with_condition(running, Condition(type="Failed", status="True"), LATER)
    assert conditions.state(failed) == conditions.FAILED
    assert conditions.finished(failed)
    assert conditions.finished((Condition(type="Succeeded", status="True"),))


def test_the_last_condition_tells_where_the_job_stands() -> None:
    """API-5: `kubectl get mpijobs` shows the last one."""
    seen: conditions.Conditions = ()
    story = [
        ("Created", "True"),
        ("Running", "True"),
        ("Suspended", "True"),
        ("Running", "False"),
        ("Suspended", "False"),
        ("Created", "True"),
        ("Running", "True"),
        ("Succeeded", "True"),
        ("Running", "False"),
    ]
    shown = []
    for step, (kind, status) in enumerate(story):
        new = Condition(type=kind, status=status, message=str(step))
        seen = with_condition(seen, new, NOW)
        assert seen[-1].type == conditions.state(seen)
        shown.append(seen[-1].type)
    assert shown[3:] == ["Suspended", "Created", "Created", "Running", "Succeeded", "Succeeded"]
