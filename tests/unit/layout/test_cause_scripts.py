"""Whose fault it was, where the order in which ranks ended must be read with care."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import mpi_trainer.layout.agent

SUMMARY = Path(mpi_trainer.layout.agent.__file__).parent / "summary.sh"
# `lines_of` sorts by time; here they come sorted.
SCRIPT = """
. "$0"
lines_of() { cat; }
w=1 value=$1 world_1=$2
if someone_left; then echo left; else echo stayed; fi
"""


def rank(number: int, end: str, at: int) -> str:
    return f"end {number} {number} 44 {end} {at} 0 0\n"


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("value", "ends", "answer"),
    [
        pytest.param(15, [("status 0", 0), ("signal 15", 300)], "left", id="first"),
        pytest.param(14, [("status 14", 0), ("status 0", 1)], "left", id="a-moment-later"),
        pytest.param(
            14,
            [("status 14", 0), ("status 0", 1), ("signal 15", 25)],
            "left",
            id="and-others-were-ended",
        ),
        pytest.param(14, [("status 14", 0), ("status 0", 90)], "stayed", id="much-later"),
        pytest.param(
            14,
            [("status 14", 0), ("status 0", 1), ("status 0", 2)],
            "stayed",
            id="14-of-its-own-while-all-end",
        ),
        pytest.param(15, [("signal 15", 0), ("status 0", 1)], "stayed", id="caught-SIGTERM"),
        pytest.param(14, [("status 14", 0), ("status 14", 1)], "stayed", id="nobody"),
    ],
)
def test_one_that_left_is_told_from_one_that_was_lost(
    shell: list[str], value: int, ends: list[tuple[str, int]], answer: str
) -> None:
    """OBS-2: Open MPI 5 ends a rank with 14 when it has lost another."""
    lines = "".join(rank(number, end, 6255500 + at) for number, (end, at) in enumerate(ends))
    command = [*shell, "-c", SCRIPT, str(SUMMARY), str(value), "prterun-train-launcher-34@1"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"{answer}\n", done.stderr


def test_14_says_nothing_where_another_mpi_runs_the_ranks() -> None:
    lines = rank(0, "status 14", 100) + rank(1, "status 0", 101)
    command = ["dash", "-c", SCRIPT, str(SUMMARY), "14", "34"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=20)
    assert done.stdout == "stayed\n", done.stderr


ABORTED = """
. "$0"
lines_of() { cat; }
pod_name() { pod=train-worker-$1; }
w=1
if blame_aborted; then echo "$cause $blame_rank $blame_pod: $text"; else echo nobody; fi
"""


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("told", "answer"),
    [
        pytest.param(
            "aborted 3 1 42\n",
            "RankFailed 3 train-worker-1: "
            "rank 3 on train-worker-1 has ended all ranks by MPI_Abort(42)",
            id="one",
        ),
        pytest.param("aborted 1 0 15\naborted 2 0 15\n", "nobody", id="two"),
        pytest.param("", "nobody", id="none"),
    ],
)
def test_of_lost_ranks_the_only_one_that_said_so_has_ended_all(
    shell: list[str], told: str, answer: str
) -> None:
    """OBS-2: MPICH may lose that line on its way to the log."""
    command = [*shell, "-c", ABORTED, str(SUMMARY)]
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"{answer}\n", done.stderr


LOST = """
. "$0"
lines_of() { [ "$2" != lost ] || echo "lost 0 1"; }
pod_name() { pod=train-worker-$(($1 - 1)); }
w=1 code=255 reason='' text='' dropped='' stopped=''
size_1=2 started_1=$1 lost_1=1 ended_1=0 raised_1='' bad_1=''
daemon_at=$2 daemon_host=2 daemon_2=$3 daemons=' 2'
find_cause
echo "$cause $blame_rank $blame_pod"
"""


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("started", "daemon_at", "status", "answer"),
    [
        pytest.param(1, "5", 127, "DaemonFailed - train-worker-1", id="never-came"),
        pytest.param(2, "5", 127, "RanksLost 0 train-worker-0", id="all-came"),
        pytest.param(1, "", 0, "RanksLost 0 train-worker-0", id="no-daemon-failed"),
    ],
)
def test_a_rank_is_not_to_blame_for_a_daemon_that_another_host_lacks(
    shell: list[str], started: int, daemon_at: str, status: int, answer: str
) -> None:
    """OBS-2: one host's ranks may run before another's daemon turns out to be missing."""
    command = [*shell, "-c", LOST, str(SUMMARY), str(started), daemon_at, str(status)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.stdout == f"{answer}\n", done.stderr


STORY = """
. "$0"
ends=$(cat)
bad_ends() { [ -z "$ends" ] || echo "$ends"; }
lines_of() { [ "$2" != aborted ] || echo "$said"; }
pod_name() { pod=train-worker-$1; }
said=${3-}
w=1 code=1 reason='' text='' dropped='' stopped='' world_1=$1
size_1=3 started_1=3 lost_1=0 ended_1=3 raised_1='' bad_1=1 orphan_1=$2 orphans_of_1=train-worker-2
daemon_at='' daemons='' by_1=openmpi
case $world_1 in hydra) by_1=hydra ;; esac
find_cause
echo "$cause $blame_rank $blame_pod"
"""
PRTERUN = "prterun-train-launcher-34@1"


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("world", "ends", "orphan", "answer"),
    [
        pytest.param(
            "34",
            ["1 1 44 signal 9 100 0 0"],
            "7",
            "RankKilled 1 train-worker-1",
            id="one-was-killed-and-daemons-followed",
        ),
        pytest.param(
            "hydra",
            ["1 1 44 signal 15 100 0 0"],
            "7",
            "RankKilled 1 train-worker-1",
            id="one-was-terminated-and-hydra-s-daemons-followed",
        ),
        pytest.param(
            "34",
            ["0 0 44 signal 15 100 0 0", "1 1 44 signal 15 100 0 0"],
            "7",
            "DaemonLost - train-worker-2",
            id="a-daemon-is-gone-and-ranks-were-ended",
        ),
        pytest.param("34", [], "7", "DaemonLost - train-worker-2", id="no-end-was-seen"),
        pytest.param("34", [], "", "CommandFailed - -", id="nothing-was-seen"),
        pytest.param(
            PRTERUN,
            ["0 0 46 status 14 112 0 0", "1 1 46 signal 15 112 0 0", "2 2 46 signal 15 137 0 0"],
            "",
            "RankKilled 1 train-worker-1",
            id="one-was-terminated-and-another-missed-it",
        ),
        pytest.param(
            PRTERUN,
            ["0 0 46 status 14 112 0 0", "1 1 46 signal 15 137 0 0", "2 2 46 signal 15 138 0 0"],
            "",
            "RankFailed 0 train-worker-0",
            id="14-of-its-own-and-prterun-ended-the-rest",
        ),
        pytest.param(
            "34",
            ["0 0 46 status 14 112 0 0", "1 1 46 signal 15 112 0 0"],
            "",
            "RankFailed 0 train-worker-0",
            id="14-says-nothing-elsewhere",
        ),
    ],
)
def test_what_only_followed_is_told_from_what_began_it(
    shell: list[str], world: str, ends: list[str], orphan: str, answer: str
) -> None:
    """OBS-2"""
    command = [*shell, "-c", STORY, str(SUMMARY), world, orphan]
    assert told_of(command, ends) == answer


@pytest.mark.parametrize("shell", [["dash"], ["busybox", "sh"]], ids=lambda words: words[0])
@pytest.mark.parametrize("number", [9, 11], ids=["killed", "crashed"])
def test_a_rank_that_aborted_is_told_so_however_it_ended(shell: list[str], number: int) -> None:
    """OBS-2: MPICH 5 may crash while it ends all ranks, or be killed with them."""
    command = [*shell, "-c", STORY, str(SUMMARY), "hydra", "7", "aborted 1 1 42"]
    assert told_of(command, [f"1 1 44 signal {number} 100 0 0"]) == "RankFailed 1 train-worker-1"


def told_of(command: list[str], ends: list[str]) -> str:
    """The cause that the agent names."""
    told = "".join(f"{end}\n" for end in ends)
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=20)
    assert not done.stderr
    return done.stdout.removesuffix("\n")
