"""The program of the ranks, with a world of two threads in place of MPI."""

from __future__ import annotations

from collections.abc import MutableSequence
from queue import SimpleQueue
from threading import Barrier, Thread
from typing import Any

import pytest

from mpi_trainer.layout.smoke import measure


class World:
    """As much of a communicator as the program calls."""

    size = 2

    def __init__(self, rank: int, both: list[SimpleQueue[Any]], barrier: Barrier) -> None:
        self.rank, self._both, self._barrier = rank, both, barrier

    def Barrier(self) -> None:  # noqa: N802 - mpi4py's name
        self._barrier.wait(10)

    def Send(self, data: bytes, dest: int) -> None:  # noqa: N802
        self._both[dest].put(data)

    def Recv(self, data: bytes, source: int) -> None:  # noqa: N802
        self._both[self.rank].get(timeout=10)

    def bcast(self, value: float, root: int) -> float:
        if self.rank == root:
            self._both[1].put(value)
            return value
        got: float = self._both[1].get(timeout=10)
        return got

    def Allreduce(  # noqa: N802
        self, given: MutableSequence[float], total: MutableSequence[float]
    ) -> None:
        self._both[1 - self.rank].put(list(given))
        other = self._both[self.rank].get(timeout=10)
        total[:] = type(total)("d", [a + b for a, b in zip(given, other, strict=True)])  # type: ignore[call-arg]
        self._barrier.wait(10)


def run(world: type[World] = World) -> list[int]:
    both: list[SimpleQueue[Any]] = [SimpleQueue(), SimpleQueue()]
    barrier, codes = Barrier(2), [-1, -1]

    def rank(number: int) -> None:
        codes[number] = measure.measure(world(number, both, barrier), "Fake MPI 1, rest\nmore")

    threads = [Thread(target=rank, args=(number,)) for number in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    return codes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.01)


def test_both_ranks_make_the_same_calls_and_tell_what_they_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run() == [0, 0]
    printed = capsys.readouterr().out
    assert "mpi-trainer-check allreduce right" in printed
    assert "mpi-trainer-check latency 0." in printed
    assert "mpi-trainer-check bandwidth " in printed
    assert printed.count("Fake MPI 1\n") == 2


def test_a_wrong_sum_ends_the_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "sum_is_right", lambda world: False)
    assert run() == [1, 1]
    assert "mpi-trainer-check allreduce wrong" in capsys.readouterr().out


def test_ranks_that_do_not_know_each_other_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    class Alone(World):
        size = 1

    assert run(Alone) == [1, 1]
    assert "mpi-trainer-check size 1" in capsys.readouterr().out
