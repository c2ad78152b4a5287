"""Output is read once, in pieces of any size, and little of it is kept."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.log_reader import KEPT, LONGEST, LogReader
from mpi_trainer.diagnose.rank_hosts import RankHosts
from tools import causedocs

RAISED = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: bad batch\n'


def fed(*pieces: str) -> list[tuple[str, int | None]]:
    reader = LogReader()
    for piece in pieces:
        reader.feed(piece)
    return [(hit.cause, hit.rank) for hit in reader.close().hits]


def test_pieces_may_be_cut_anywhere() -> None:
    for size in (1, 7, 40):
        text = f"step 1\n{RAISED}step 2"
        pieces = [text[n : n + size] for n in range(0, len(text), size)]
        assert fed(*pieces) == [("ProgramException", None)]


def test_a_progress_bar_does_not_hide_what_follows_it() -> None:
    assert fed("10%|#\r20%|##\rCUDA out of memory\n") == [("GpuOutOfMemory", None)]


@pytest.mark.parametrize(
    "mark",
    ["[1,3]<stderr>:", "[1,3]<stderr>: ", "[rank3]: ", "[default3]:", "[3] ", "[3]<stderr>:",
     "2026-01-31T12:00:00.123456789Z [1,3]<stdout>:", "\x1b[31m[rank3]: \x1b[0m",
     "[prterun-l-2@1,3][n-b:34]<stderr>: ", "2026-01-31T12:00:00+0000[1,3]<stderr>: ",
     "Sat Jan 31 12:00:00 2026[1,3]<stdout>:", "Sun Feb  1 12:00:00 2026[3]<stderr>:",
     "[pod/train-launcher-x7k2p/mpi] [1,3]<stderr>:"],
)  # fmt: skip
def test_the_rank_of_a_line_is_read_from_every_kind_of_mark(mark: str) -> None:
    assert fed(f"{mark}CUDA out of memory\n") == [("GpuOutOfMemory", 3)]
    marked = "".join(f"{mark}{line}\n" for line in RAISED.splitlines())
    assert fed(marked) == [("ProgramException", 3)]


def test_warnings_levels_and_prose_are_no_exceptions() -> None:
    for line in ("RuntimeWarning: overflow", "INFO: loaded", "Note: nothing", "Results: 3 of 4"):
        assert fed(f"Traceback (most recent call last):\n{line}\n") == []


def test_an_exception_of_any_name_is_one_right_after_the_last_frame() -> None:
    """Python prints a script's own classes without a module."""
    frame = 'Traceback (most recent call last):\n  File "a.py", line 1\n    step()\n'
    assert fed(f"{frame}NoBatchesLeft: shard 7\n") == [("ProgramException", None)]
    assert fed(f"{frame}NoBatchesLeft\n") == [("ProgramException", None)]
    assert fed(f"{frame}step 2\nEpoch: 3 of 4\n") == []


def test_a_rank_of_a_thousand_digits_is_none() -> None:
    assert fed(f"[1,{'9' * 1000}]<stderr>:CUDA out of memory\n") == [("GpuOutOfMemory", None)]


def test_memory_is_bounded_whatever_is_printed() -> None:
    """S-2."""
    reader = LogReader()
    reader.feed("x" * 100)
    tracemalloc.start()
    try:
        for _ in range(30):
            reader.feed("CUDA out of memory " * 600)
            reader.feed("CUDA out of memory\nValueError: x\nrank 1 on n-1\n" * 60)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    log = reader.close()
    assert peak < 2_000_000
    assert len(log.hits) <= 6 * KEPT
    assert all(len(hit.line) <= LONGEST for hit in log.hits)


def test_a_host_is_believed_where_it_looks_like_one() -> None:
    hosts = RankHosts()
    for line in ("rank 0 on cuda:0", "rank 1 on 10.0.0.1", "rank 2 at step", "rank 3 on n-3."):
        hosts.read(line)
    assert [hosts.host(rank) for rank in range(4)] == ["", "", "", "n-3"]
    assert hosts.ranks("n-3.train.svc") == (3,)


def test_of_very_many_ranks_every_host_is_looked_up_at_once() -> None:
    """S-2: a finding names a hundred hosts."""
    hosts = RankHosts(tuple((rank, f"n-{rank // 2}") for rank in range(bounds.RANKS)))

    def seconds(asked: range) -> float:
        began = time.process_time()
        for n in asked:
            assert hosts.ranks(f"unknown-{n}") == ()
        return time.process_time() - began

    first = seconds(range(1))
    assert seconds(range(100)) < max(first, 0.05)
    assert hosts.ranks("n-7") == (14, 15)


def test_an_ordinal_is_a_rank_only_where_no_pair_contradicts_it() -> None:
    agreeing, contradicting = RankHosts(), RankHosts()
    agreeing.read("[w-2:00] *** reported by process [9,2]")
    agreeing.read("rank 2 of 4")
    contradicting.read("[w-2:00] *** reported by process [9,5]")
    contradicting.read("rank 2 of 4")
    assert agreeing.ranks("w-1") == (1,)
    assert contradicting.ranks("w-1") == ()
    assert agreeing.ranks("w-7") == ()


def test_hydras_proxies_tell_hosts_where_each_has_one_rank() -> None:
    hosts = RankHosts()
    hosts.read("rank 0 of 2")
    hosts.read("[proxy:0:1@n-b] main: error")
    assert hosts.host(1) == "n-b"
    assert hosts.ranks("n-b") == (1,)
    assert not hosts.complete


def test_the_page_about_causes_is_as_the_catalogue_has_them() -> None:
    assert causedocs.PAGE.read_text() == causedocs.page(), "run `python -m tools.causedocs`"
