"""Records of the rank wrapper are read back, its own and damaged ones."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mpi_trainer.decide.observed import End, ObservedRank
from mpi_trainer.layout.agent import scripts
from mpi_trainer.local.execute import ranks


@pytest.fixture
def share(tmp_path: Path) -> Path:
    ranks.clear(str(tmp_path))
    return tmp_path


def write(share: Path, name: str, text: str) -> None:
    (share / ranks.FOLDER / name).write_text(text)


def read(share: Path) -> tuple[ObservedRank, ...]:
    return ranks.read({"pod": str(share)}, 2)


def test_a_rank_that_runs_has_no_end(share: Path) -> None:
    write(share, "3.h.10.99.start", "rank=3\nsize=4\nhost=h\npid=11\nstart=99\n")
    assert read(share) == (ObservedRank(rank=3, size=4, pod="pod", attempt=2, pid=11),)


@pytest.mark.parametrize(
    ("line", "end"),
    [("status=0", End(code=0)), ("status=137", End(code=137)), ("signal=9", End(signal=9))],
)
def test_the_end_takes_the_place_of_the_start(share: Path, line: str, end: End) -> None:
    write(share, "0.h.10.99.start", "rank=0\nsize=1\npid=11\n")
    write(share, "0.h.10.99.end", f"rank=0\nsize=1\npid=11\n{line}\n")
    assert [rank.end for rank in read(share)] == [end]


def test_an_end_without_a_start_counts(share: Path) -> None:
    write(share, "0.h.10.99.end", "rank=0\nsize=1\npid=\nstatus=1\n")
    (rank,) = read(share)
    assert (rank.rank, rank.end) == (0, End(code=1))


def test_the_last_record_of_a_rank_counts(share: Path) -> None:
    """A script may run mpirun, see it fail, and run it again."""
    write(share, "0.h.10.99.end", "rank=0\nstatus=1\n")
    write(share, "0.h.20.99.end", "rank=0\nstatus=0\n")
    os.utime(share / ranks.FOLDER / "0.h.10.99.end", (100.0, 100.0))
    os.utime(share / ranks.FOLDER / "0.h.20.99.end", (100.5, 100.5))
    assert [(rank.end, rank.ended) for rank in read(share)] == [(End(code=0), 100.5)]


def test_unfinished_records_are_ignored(share: Path) -> None:
    write(share, ".0.h.10.99.start", "rank=0\nsi")
    write(share, ".1.h.10.99.end", "")
    write(share, "2.h.10.99.start", "rank=2\n")
    write(share, ".2.h.10.99.end", "rank=2\nstatus=0\n")
    assert [(rank.rank, rank.end) for rank in read(share)] == [(2, None)]


@pytest.mark.parametrize("text", ["", "size=4\n", "rank=\n", "rank=x\n", "rank=-1\n", "\xff\n="])
def test_a_record_that_names_no_rank_is_ignored(share: Path, text: str) -> None:
    write(share, "0.h.10.99.start", text)
    assert read(share) == ()


def test_ranks_come_in_order_over_all_pods(tmp_path: Path) -> None:
    shares = {}
    for pod, numbers in (("b", (10, 2)), ("a", (9, 0))):
        shares[pod] = str(tmp_path / pod)
        (tmp_path / pod).mkdir()
        ranks.clear(shares[pod])
        for number in numbers:
            write(tmp_path / pod, f"{number}.h.1.1.start", f"rank={number}\n")
    found = ranks.read(shares, 1)
    assert [(rank.rank, rank.pod) for rank in found] == [(0, "a"), (2, "b"), (9, "a"), (10, "b")]


def test_a_pod_without_a_directory_has_no_ranks(tmp_path: Path) -> None:
    assert ranks.read({"pod": str(tmp_path / "absent")}, 1) == ()


def test_clearing_leaves_an_empty_directory(share: Path) -> None:
    write(share, "0.h.10.99.start", "rank=0\n")
    write(share, ".1.h.10.99.end", "")
    ranks.clear(str(share))
    assert [p.name for p in (share / ranks.FOLDER).rglob("*")] == [ranks.DONE]


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("exit 0", End(code=0)),
        ("exit 7", End(code=7)),
        ("kill -SEGV $$", End(signal=signal.SIGSEGV)),
        ("kill -TERM $$", End(signal=signal.SIGTERM)),
    ],
)
def test_what_the_real_wrapper_writes_is_read(share: Path, script: str, end: End) -> None:
    wrapper = share / "rank"
    wrapper.write_text(scripts.text("rank"))
    env = {
        "PATH": os.environ["PATH"],
        "MPI_TRAINER_RANK_DIR": str(share / ranks.FOLDER),
        "PMI_RANK": "5",
        "PMI_SIZE": "8",
    }
    subprocess.run(["/bin/sh", wrapper, "/bin/sh", "-c", script], env=env, check=False)
    (rank,) = read(share)
    assert (rank.rank, rank.size, rank.end) == (5, 8, end)
    assert rank.pid > 0


def test_only_a_kill_in_a_pod_out_of_memory_is_blamed_on_memory() -> None:
    killed, failed = End(signal=9), End(code=1)
    seen = tuple(
        ObservedRank(rank=i, size=4, pod=pod, end=end)
        for i, (pod, end) in enumerate(
            [("full", killed), ("full", failed), ("full", None), ("other", killed)]
        )
    )
    ends = [rank.end for rank in ranks.with_oom_reason(seen, {"full"})]
    assert ends == [End(signal=9, reason="OOMKilled"), failed, None, killed]
