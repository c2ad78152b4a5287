from __future__ import annotations

import pytest

from mpi_trainer.api.spelling import distance, nearest

KNOWN = ("replicas", "template", "restartPolicy", "env")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("replica", "replicas"), ("Replicas", "replicas"), ("relpicas", "replicas"),
        ("restart", "restartPolicy"), ("restartpolicy", "restartPolicy"), ("ENV", "env"),
        ("enw", "env"), ("x", None), ("en", None), ("volume", None), ("r" * 65, None),
    ],
)  # fmt: skip
def test_nearest_finds_what_was_meant(word: str, meant: str | None) -> None:
    assert nearest(word, KNOWN) == meant


def test_nearest_of_nothing_is_nothing() -> None:
    assert nearest("word", ()) is None


def test_a_beginning_of_two_names_suggests_neither() -> None:
    assert nearest("containerX", ("containerXAlpha", "containerXBravo")) is None


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [("", "", 0), ("ab", "ba", 1), ("kitten", "sitting", 3), ("a", "", 1)],
)
def test_distance_counts_slips(one: str, other: str, slips: int) -> None:
    assert distance(one, other) == slips == distance(other, one)
