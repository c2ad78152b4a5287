"""What is remembered of jobs, and that it goes with them."""

from __future__ import annotations

import msgspec

from mpi_trainer.controller.job_memory import JobMemories
from mpi_trainer.runtime.partial import Key

PI = Key("lab", "pi")


class _Count(msgspec.Struct):
    number: int = 0


class _Word(msgspec.Struct):
    text: str = ""


def test_each_part_of_a_job_is_kept_beside_the_others() -> None:
    memories = JobMemories()
    memories.begin(PI, "u")
    memories.part("u", _Count).number = 3
    memories.part("u", _Word).text = "x"
    memories.begin(PI, "u")
    assert memories.part("u", _Count).number == 3
    assert memories.part("u", _Word).text == "x"


def test_nothing_is_left_of_a_job_that_was_dropped() -> None:
    """C-9: nor does a pass that was on its way bring it back."""
    memories = JobMemories()
    memories.begin(PI, "u")
    memories.part("u", _Count).number = 3
    memories.drop(PI)
    memories.part("u", _Count).number = 4
    assert len(memories) == 0
    assert memories.part("u", _Count).number == 0


def test_a_job_of_the_same_name_begins_with_nothing() -> None:
    memories = JobMemories()
    memories.begin(PI, "old")
    memories.part("old", _Count).number = 3
    memories.begin(PI, "new")
    assert memories.part("new", _Count).number == 0
    assert len(memories) == 1
