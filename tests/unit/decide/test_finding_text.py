"""Why a job failed, in the condition and events that say that it has (SC-006)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.decide.finding_text import conditions_with_cause, events_with_cause, with_cause
from mpi_trainer.decide.reasons import DecidedEvent
from mpi_trainer.diagnose.finding import Finding

FOUND = Finding(
    "FileMissing", "likely", "A file is missing", "Mount it.", (1,), ("pi-worker-1",), "No such"
)
SAID = "Launcher pi-launcher ended with exit code 1"
TOLD = f"{SAID}. FileMissing: A file is missing (rank 1 on pi-worker-1). Mount it."


def test_a_message_says_cause_place_and_remedy_after_the_end() -> None:
    assert with_cause(SAID, (FOUND,)) == with_cause(f"{SAID}.", (FOUND,)) == TOLD


@pytest.mark.parametrize("found", [(), (replace(FOUND, confidence="possible"),)])
def test_a_guess_is_not_told(found: tuple[Finding, ...]) -> None:
    assert with_cause(SAID, found) == SAID


def test_a_long_message_goes_without_the_remedy_and_then_without_the_cause() -> None:
    long = replace(FOUND, remedy="x" * bounds.MESSAGE)
    assert with_cause(SAID, (long,)) == TOLD.removesuffix(" Mount it.")
    full = "y" * bounds.MESSAGE
    assert with_cause(full, (FOUND,)) == full


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b2J", "a\nb", "\u202eb"])
def test_what_terminals_obey_is_not_told(hostile: str) -> None:
    """Users can write the annotation that findings are read from."""
    for field in ("cause", "title", "hosts"):
        value = (hostile,) if field == "hosts" else hostile
        assert with_cause(SAID, (replace(FOUND, **{field: value}),)) == SAID
    assert with_cause(SAID, (replace(FOUND, remedy=hostile),)) == TOLD.removesuffix(" Mount it.")


def test_only_the_condition_and_the_events_of_the_failure_change() -> None:
    conditions = (
        Condition(type="Running", status="False", message=SAID),
        Condition(type="Failed", status="True", message=SAID),
    )
    assert [c.message for c in conditions_with_cause(conditions, (FOUND,))] == [SAID, TOLD]
    events = (DecidedEvent("Warning", "a", SAID), DecidedEvent("Warning", "b", "other"))
    told = events_with_cause(events, {SAID}, (FOUND,))
    assert [one.message for one in told] == [TOLD, "other"]
