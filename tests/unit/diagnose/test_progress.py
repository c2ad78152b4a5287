"""Progress, ETA and metrics out of what training programs print."""

from __future__ import annotations

import json
import math
import re
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.diagnose.progress import Progress, Tracker
from mpi_trainer.diagnose.readings import read


def tracked(*lines: str, every: float = 1.0) -> Progress:
    tracker = Tracker()
    for number, line in enumerate(lines):
        tracker.see(number * every, line)
    assert tracker.progress is not None
    return tracker.progress


@pytest.mark.parametrize(
    ("line", "step", "total", "unit"),
    [
        ("step 5/100", 5, 100, "step"),
        ("epoch 3/20 loss 0.1234", 3, 20, "epoch"),
        ("Epoch: 3 / 20", 3, 20, "epoch"),
        ("[3/20]", 3, 20, ""),
        ("[ 3/20 ] building", 3, 20, ""),
        ("iteration 10 of 50", 10, 50, "iteration"),
        ("Iter 10 out of 50", 10, 50, "iteration"),
        ("Train Epoch [3/20], Step [30/60], Loss: 0.5", 2.5, 20, "epoch"),
        ("Epoch 3/20:  45%|####     | 45/100 [00:05<00:06, 9.0it/s, loss=0.1]", 2.45, 20, "epoch"),
        ("Epoch 3:  45%|", 45, 100, "epoch 3"),
        (" 45%|####      | 9/20 [00:05<00:06]", 9, 20, ""),
        (" 10%|# | 1/10\r 20%|## | 2/10", 2, 10, ""),
        ("step 7 loss=0.25", 7, None, "step"),
        ('{"epoch": 3, "epochs": 20, "loss": 0.12}', 3, 20, "epoch"),
        ('{"step": 5, "total_steps": 100}', 5, 100, "step"),
        ('{"global_step": 5, "max_steps": 100, "epoch": 0.05}', 5, 100, "step"),
        ('{"epoch": 2, "total_epochs": 4, "batch": 5, "batches": 10}', 1.5, 4, "epoch"),
        ('INFO {"iteration": 2, "iterations": 4}', 2, 4, "iteration"),
        ('{"progress": 0.25}', 25, 100, "%"),
        ('{"progress": 25}', 25, 100, "%"),
        ('{"progress": "25%"}', 25, 100, "%"),
        ('{"progressPercentage": 1}', 1, 100, "%"),
    ],
)
def test_usual_forms_are_understood(line: str, step: float, total: float | None, unit: str) -> None:
    progress = tracked(line)
    assert progress.step == pytest.approx(step)
    assert (progress.total, progress.unit) == (total, unit)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello",
        "/usr/lib/python3/dist-packages",
        "2026/11/15 12:00:00 starting",
        "[2026/11/15] starting",
        "step 2: install the driver",
        "step 9/3",
        "epoch 1/0",
        "listening on 0.0.0.0:80",
        "{}",
        '{"level": "info", "count": 3}',
        '{"epoch": "three"}',
        '{"epoch": true, "epochs": true}',
        '{"progress": NaN}',
        '{"progress": 1e999}',
        "{broken}",
        "[1, 2]",
        "100 of them",
    ],
)
def test_other_lines_say_nothing(line: str) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ("epoch 3/20 loss 0.1234", {"loss": 0.1234}),
        ("epoch 3/20 loss=0.5 val_acc: 93.5% lr=1e-4", {"loss": 0.5, "val_acc": 93.5, "lr": 1e-4}),
        ("step 5/10, loss: -1.5, took 3 s", {"loss": -1.5}),
        ("step 5/10 loss=nan", {}),
        ('{"step": 1, "loss": 2.5, "rank": 3, "time": 12345}', {"loss": 2.5}),
        ('{"step": 1, "metrics": {"loss": 2, "acc": 0.5}}', {"loss": 2, "acc": 0.5}),
        ('{"metrics": {"auc": 0.75}}', {"auc": 0.75}),
    ],
)
def test_metrics_come_with_the_progress(line: str, metrics: dict[str, float]) -> None:
    assert tracked(line).metrics == metrics


def test_metrics_last_until_they_are_printed_anew() -> None:
    progress = tracked("epoch 1/3 loss=0.5 acc=0.9", "epoch 2/3 loss=0.25")
    assert progress.metrics == {"loss": 0.25, "acc": 0.9}


def test_the_end_is_expected_from_the_pace() -> None:
    assert tracked("step 0/10", "step 1/10", "step 2/10", every=3.0).eta_seconds == 24.0


def test_one_line_gives_no_pace_and_the_last_step_no_wait() -> None:
    assert tracked("step 1/10").eta_seconds is None
    assert tracked("step 1/2", "step 2/2").eta_seconds == 0.0


def test_a_slow_start_is_forgotten() -> None:
    tracker = Tracker()
    tracker.see(0.0, "step 0/100")
    for step in range(1, 51):
        tracker.see(1000.0 + step, f"step {step}/100")
    assert tracker.progress is not None
    assert tracker.progress.eta_seconds == pytest.approx(50.0)


def test_ranks_that_lag_do_not_turn_progress_back() -> None:
    progress = tracked("step 5/100", "step 5/100", "step 6/100", "step 5/100")
    assert progress.step == 6


def test_a_new_beginning_is_seen() -> None:
    progress = tracked("step 90/100", "step 91/100", "step 1/100", "step 2/100")
    assert progress.step == 2
    assert progress.eta_seconds == 98.0


def test_a_clock_set_back_costs_the_pace_only() -> None:
    tracker = Tracker()
    for at, step in ((100.0, 1), (101.0, 2), (5.0, 3)):
        tracker.see(at, f"step {step}/10")
    assert tracker.progress is not None
    assert (tracker.progress.step, tracker.progress.eta_seconds) == (3, None)
    tracker.see(6.0, "step 4/10")
    assert tracker.progress.eta_seconds == 6.0


def test_bars_within_an_epoch_do_not_hide_the_epochs() -> None:
    progress = tracked("epoch 2/20", "[90/100]", " 45%|###| 45/100 [00:05<00:06]")
    assert (progress.step, progress.total, progress.unit) == (2, 20, "epoch")


def test_a_total_said_once_is_remembered() -> None:
    assert tracked('{"total_steps": 100}', '{"step": 5}').fraction == 0.05


def test_a_line_of_five_megabytes_is_cheap() -> None:
    lines = [
        "step 1/2 " + "x" * 5_000_000,
        "{" + '"a":' * 1_250_000 + "}",
        "[" * 5_000_000,
        "\r".join(["1%|"] * 1_250_000),
        "step " * 1_000_000,
    ]
    began = time.perf_counter()
    for line in lines:
        tracker = Tracker()
        tracker.see(0.0, line)
    assert time.perf_counter() - began < 2.0


def test_lines_without_progress_are_refused_faster_than_they_can_be_split_into_words() -> None:
    line = "2026-11-15 12:00:00 INFO worker: the quick brown dog jumps over lazy foxes, 17 times"
    tracker, words = Tracker(), re.compile(r"\w+")
    refusing = splitting = 0.0
    tracing = sys.gettrace()
    sys.settrace(None)  # coverage would cost our lines, and not the expression's
    try:
        for _ in range(100):
            began = time.process_time()
            for _ in range(300):
                tracker.see(0.0, line)
            between = time.process_time()
            for _ in range(300):
                words.findall(line)
            refusing += between - began
            splitting += time.process_time() - between
    finally:
        sys.settrace(tracing)
    assert refusing < splitting


numbers = st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=5))
keys = st.sampled_from(["epoch", "epochs", "step", "total_steps", "progress", "loss", "metrics"])


@given(
    st.lists(
        st.tuples(
            st.floats(),
            st.one_of(
                st.text(),
                st.text(alphabet="stepochir\u017f 0123456789\u0663/[]%|=.:\r{}", max_size=60),
                st.dictionaries(keys, st.one_of(numbers, st.dictionaries(keys, numbers))).map(
                    json.dumps
                ),
            ),
        )
    )
)
def test_nothing_raises_and_every_value_is_finite(lines: list[tuple[float, str]]) -> None:
    tracker = Tracker()
    for at, text in lines:
        tracker.see(at, text)
        if tracker.progress is not None:
            assert all(math.isfinite(v) for v in tracker.progress.metrics.values())
            fraction = tracker.progress.fraction
            assert fraction is None or 0 <= fraction <= 1


def test_an_end_that_is_more_than_a_century_away_is_not_told() -> None:
    tracker = Tracker()
    for at, step in ((0.0, 1), (100.0, 2)):
        tracker.see(at, f'{{"global_step": {step}, "max_steps": 1e308}}')
    assert tracker.progress is not None and tracker.progress.eta_seconds is None
