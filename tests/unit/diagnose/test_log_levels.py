"""Levels of log lines, as logging libraries write them."""

from __future__ import annotations

import pytest

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.log_levels import LevelFilter, level


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("2026-11-18 06:00:00,123 ERROR train: no such file", 3),
        ("ERROR:root:boom", 3),
        ("[WARNING] slow disk", 2),
        ("WARN  NCCL falls back", 2),
        ('{"level": "error", "msg": "boom"}', 3),
        ("time=12 level=info msg=started", 1),
        ("info: reading", 1),
        ("DEBUG x", 0),
        ("CRITICAL no memory", 3),
        ("Traceback (most recent call last):", 3),
        ("ValueError: no such column", 3),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory", 3),
        ("epoch 3 loss 0.2", None),
        ("the error of the estimate is 0.1", None),
        ("information follows", None),
        ("", None),
    ],
)
def test_level_is_read_from_the_beginning_of_a_line(text: str, place: int | None) -> None:
    assert level(text) == place


def test_indented_lines_belong_to_the_line_before_of_their_rank() -> None:
    wanted = LevelFilter("error")
    said = [
        (0, "Traceback (most recent call last):", True),
        (1, "epoch 3", False),
        (0, '  File "train.py", line 3', True),
        (1, "  accuracy 0.9", False),
        (0, "ValueError: boom", True),
        (0, "WARNING going on", False),
    ]
    for rank, text, taken in said:
        assert wanted.takes(rank, text) is taken, text


def test_marks_of_any_number_of_ranks_take_bounded_memory() -> None:
    """A program can print the mark of a rank that there is not."""
    wanted = LevelFilter("error")
    for rank in range(bounds.RANKS + 100):
        wanted.takes(rank, "ERROR x")
    assert wanted.takes(bounds.RANKS + 99, "  more of it")
    assert len(wanted._before) <= bounds.RANKS
