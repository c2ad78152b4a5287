"""What a program prints becomes series that stay small, in linear time."""

from __future__ import annotations

import time

from mpi_trainer.diagnose.series import MOST_POINTS, MOST_SERIES, Recorder


def recorded(count: int) -> Recorder:
    made = Recorder()
    for number in range(count):
        made.see(float(number), f'{{"step": {number}, "loss": {1 / (number + 1)}}}', "launcher", 0)
    return made


def test_a_long_series_keeps_its_whole_time_and_its_newest_value() -> None:
    for count in (1, 2, 239, 240, 241, 480, 10_000):
        found = {one.name: one for one in recorded(count).series()}
        points = found["loss"].points
        assert 1 <= len(points) <= MOST_POINTS and len(points) >= min(count, MOST_POINTS // 2)
        assert points[-1] == (count - 1.0, 1 / count)
        assert [at for at, _ in points] == sorted({at for at, _ in points})
        assert points[0][0] <= count / 50
        assert found["step"].rank == 0 and found["step"].pod == "launcher"


def test_more_names_than_are_shown_are_counted_and_strange_values_left_out() -> None:
    made = Recorder()
    for number in range(MOST_SERIES + 5):
        made.see(1.0, f'{{"step": 1, "m{number}": 1.0}}', "pod", None)
    assert len(made.series()) == MOST_SERIES and made.dropped == 6
    made = Recorder()
    for text in (
        '{"step": 1, "loss": NaN}',
        "loss: nan",
        "",
        "x" * 100_000,
        "\0",
        '{"loss":1e999}',
    ):
        made.see(1.0, text, "pod", None)
    assert {one.name for one in made.series()} <= {"step"}


def test_the_time_grows_with_the_lines_alone() -> None:
    began = time.process_time()
    recorded(20_000)
    assert time.process_time() - began < 5
