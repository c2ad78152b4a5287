"""The lines of a smoke run become steps, numbers and a sentence; no line is trusted."""

from __future__ import annotations

import time

import pytest

from mpi_trainer.check.report import CheckReport, CheckStep, measured, words

WELL = """\
name a.train 10.0.0.1
name b.train 10.0.0.2
mpirun l mpirun (Open MPI) 4.1.8
ssh a.train 0
mpirun a.train mpirun (Open MPI) 4.1.8
ssh b.train 0
mpirun b.train mpirun (Open MPI) 4.1.8
rank 0 a
rank 1 b
start 0
library 0 a Open MPI v4.1.8
library 1 b Open MPI v4.1.8
allreduce right
latency 0.000012
bandwidth 1250000000
measure 0"""


def lines(text: str) -> list[str]:
    return [f"[1,0]<stdout>:mpi-trainer-check {line}" for line in text.splitlines()]


def steps(text: str, *, ended: bool = True) -> dict[str, CheckStep]:
    return {one.name: one for one in measured(lines(text), ended=ended).steps}


def report(text: str, **fields: object) -> CheckReport:
    found = measured(lines(text), ended=True)
    return CheckReport("train", "MPIJob", steps=found.steps, **fields)  # type: ignore[arg-type]


def test_a_run_that_went_well_has_every_step_and_both_numbers() -> None:
    found = measured(lines(WELL), ended=True)
    assert {one.outcome for one in found.steps} == {"ok"}
    assert (found.latency, found.bandwidth, found.root) == (0.000012, 1.25e9, False)
    page = words(report(WELL))
    assert "12.0 µs for 8 bytes one way" in "\n".join(page)
    assert "1.25 GB/s for 4 MiB one way" in "\n".join(page)
    assert page[-1] == "MPIJob train works"


@pytest.mark.parametrize(
    ("old", "new", "step", "text"),
    [
        ("10.0.0.2", "-", "host names", "DNS does not know b.train"),
        ("ssh b.train 0", "ssh b.train 255", "SSH", "no connection to b.train (exit code 255)"),
        ("1 b Open MPI v4.1.8", "1 b Open MPI v5", "MPI versions", "b has Open MPI v5"),
        ("start 0", "start 213", "start of ranks", "mpirun ended with exit code 213"),
        ("rank 1 b", "rank 1 a", "start of ranks", "both ranks ran on a"),
        ("allreduce right", "allreduce wrong", "allreduce", "the sum of both ranks is wrong"),
        ("allreduce right", "size 1", "allreduce", "mpi4py has another MPI"),
        ("measure 0", "measure 1", "allreduce", "mpirun ended with exit code 1"),
    ],
)
def test_what_failed_is_named(old: str, new: str, step: str, text: str) -> None:
    one = steps(WELL.replace(old, new))[step]
    assert one.outcome == "failed"
    assert text in one.text
    assert not report(WELL.replace(old, new)).passed


def test_versions_of_mpirun_count_where_ranks_told_none() -> None:
    text = "\n".join(line for line in WELL.splitlines() if not line.startswith("library"))
    assert steps(text)["MPI versions"].outcome == "ok"
    other = text.replace("mpirun b.train mpirun (Open MPI) 4.1.8", "mpirun b.train MPICH 5")
    assert "b.train has MPICH 5" in steps(other)["MPI versions"].text
    assert steps("name a 1\nmpirun l -")["MPI versions"].outcome == "failed"


def test_an_image_without_mpi4py_says_what_was_not_measured() -> None:
    text = WELL[: WELL.index("library")] + "unmeasured the image has no Python with mpi4py"
    found = steps(text)
    for name in ("allreduce", "latency", "bandwidth"):
        assert (found[name].outcome, found[name].text) == (
            "not tried",
            "the image has no Python with mpi4py",
        )
    assert report(text).passed


def test_a_run_without_getent_and_ssh_says_so() -> None:
    kept = [line for line in WELL.splitlines() if not line.startswith(("name", "ssh", "mpirun"))]
    found = steps("\n".join(kept))
    assert found["host names"].text == "the image has no getent"
    assert found["SSH"].outcome == "not tried"


def test_what_a_run_was_at_when_time_was_over_has_failed() -> None:
    found = steps(WELL[: WELL.index("start 0")], ended=False)
    assert (found["start of ranks"].outcome, found["start of ranks"].text) == (
        "failed",
        "not done in time",
    )
    assert found["allreduce"].outcome == "not tried"


def test_both_pods_on_one_node_are_told() -> None:
    assert "note: both ran on node n1: nothing between two nodes was tried" in words(
        report(WELL, nodes=("n1", "n1"))
    )


def test_errors_and_no_smoke_run_have_a_sentence() -> None:
    assert CheckReport("r", "TrainingRuntime", errors=("x",)).summary == (
        "TrainingRuntime r cannot work as it is written"
    )
    bare = CheckReport("r", "TrainingRuntime", unrun="as asked for")
    assert words(bare) == [
        "note: no smoke run: as asked for",
        "TrainingRuntime r: nothing wrong was found",
    ]
    assert "error: late" in words(CheckReport("r", "MPIJob", problem="late"))


@pytest.mark.parametrize(
    "text",
    [
        "mpi-trainer-check " * 200_000,
        "mpi-trainer-check latency nan",
        "mpi-trainer-check rank",
        "x",
    ],
)
def test_hostile_lines_are_read_in_no_time(text: str) -> None:
    began = time.perf_counter()
    found = measured([text] * 100, ended=True)
    assert time.perf_counter() - began < 1
    assert found.latency is None
    assert {one.outcome for one in found.steps} == {"not tried"}
