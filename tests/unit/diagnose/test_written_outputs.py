"""SC-006. Outputs written after what MPIs, NCCL and frameworks print, with the harmless lines that
real ones have before the failure. Unlike in `bench.diagnose`, no narrower cause will do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import diagnose
from mpi_trainer.diagnose.cause import findings
from mpi_trainer.diagnose.finding import Facts
from mpi_trainer.diagnose.log_reader import LogReader

WRITTEN = Path(__file__).parent / "written"
HARMLESS = (Path(__file__).parent / "harmless.txt").read_text().splitlines()
RAISED = (
    "[1,1]<stderr>:Traceback (most recent call last):",
    '[1,1]<stderr>:  File "/app/t.py", line 30, in <module>',
    "[1,1]<stderr>:ValueError: learning rate must be positive",
)
LABELS: dict[str, Any] = json.loads((WRITTEN / "labels.json").read_text())


@pytest.mark.parametrize("name", sorted(LABELS))
def test_a_written_output_is_explained(name: str) -> None:
    one = diagnose.sample(WRITTEN / name, LABELS[name])
    found = diagnose.found(one)
    if not one.causes:
        assert found == ()
        return
    assert {found[0].cause, found[0].instead} & set(one.causes), found[0]
    assert one.rank is None or found[0].ranks[0] == one.rank, found[0]
    assert one.host is None or one.host in found[0].hosts, found[0]
    assert found[0].line


def test_every_written_output_has_a_label() -> None:
    assert {path.name for path in WRITTEN.glob("*.txt")} == set(LABELS)


def test_what_open_mpi_says_of_every_host_is_not_shown_as_the_reason() -> None:
    name = "unexplained-after-openib.txt"
    one = diagnose.sample(WRITTEN / name, LABELS[name])
    assert diagnose.found(one)[0].line == "the mesh has no cells"


@pytest.mark.parametrize("mark", ["", "[1,0]<stderr>:"])
def test_no_harmless_line_hides_an_exception(mark: str) -> None:
    """What libraries and images print at a start, each line alone and all together."""
    for lines in ([*HARMLESS], *([line] for line in HARMLESS)):
        log = LogReader().read([*(mark + line for line in lines), *RAISED])
        found = findings(log, Facts(exit_code=1))[0]
        assert (found.cause, found.ranks) == ("ProgramException", (1,)), lines[0]


def test_no_harmless_line_is_a_cause_of_a_run_that_ended_well() -> None:
    for line in HARMLESS:
        assert findings(LogReader().read([line, "done"]), Facts(exit_code=0)) == (), line


FRAME = ("Traceback (most recent call last):", '  File "/app/t.py", line 40, in <module>')
FOLLOWERS = {
    "nccl": "torch.distributed.DistBackendError: NCCL error in: x.cpp:1970, remote process exited "
    "or there was a network error, NCCL version 2.20.5",
    "nccl of a closed socket": "torch.distributed.DistBackendError: NCCL error in: x.cpp:1970, "
    "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5",
    "gloo": "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:9",
    "gloo that waits": "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:133] Timed out waiting "
    "1800000ms for recv operation to complete",
    "rendezvous": "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for "
    "clients. 63/64 clients joined.",
    "horovod": "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This "
    "was caused by an exception on one of the ranks",
    "horovod with nccl": "horovod.common.exceptions.HorovodInternalError: ncclCommInitRank failed: "
    "unhandled system error",
    "sockets": "ConnectionResetError: [Errno 104] Connection reset by peer",
    "pipes": "BrokenPipeError: [Errno 32] Broken pipe",
    "streams": "EOFError",
    "mpi4py": "mpi4py.MPI.Exception: MPI_ERR_PROC_FAILED: Process Failure",
    "torchrun": "torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got "
    "signal: 15",
    "watchdog": "[E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=18) ran for 1800116 milliseconds before timing out.",
}


@pytest.mark.parametrize("mark", ["[1,{rank}]<stderr>:", "[rank{rank}]: ", "[{rank}] ", ""])
@pytest.mark.parametrize("who", FOLLOWERS)
def test_of_64_ranks_the_one_that_failed_by_itself_is_the_cause(who: str, mark: str) -> None:
    """SC-006. Whichever is printed first: what the other 63 say of it, or it."""
    root = [mark.format(rank=3) + line for line in (*FRAME, "ValueError: negative learning rate")]
    others = [
        (mark + line).format(rank=rank)
        for rank in range(64)
        if rank != 3
        for line in (*FRAME, FOLLOWERS[who])
    ]
    for lines in (root + others, others + root):
        found = findings(LogReader().read(lines), Facts(exit_code=1))[0]
        assert (found.cause, found.line) == (
            "ProgramException",
            "ValueError: negative learning rate",
        )
        assert not mark or found.ranks == (3,)


RULE = "-" * 74
GONE = {
    "RankKilled": "mpirun noticed that process rank 3 with PID 8 on node n3 exited on signal 9 "
    "(Killed).",
    "RankSegfault": "prterun noticed that process rank 3 with PID 8 on node n3 exited on signal 11 "
    "(Segmentation fault).",
    "WorkerLost": "ORTE has lost communication with a remote daemon.\n\n"
    "  Remote daemon: [[4,0],4] on node n3",
}


@pytest.mark.parametrize("cause", GONE)
@pytest.mark.parametrize("who", FOLLOWERS)
def test_a_rank_that_ended_without_a_word_is_the_cause(who: str, cause: str) -> None:
    """SC-006. Memory is the usual reason, and the others wait for it, or lose it."""
    others = [
        f"[1,{rank}]<stderr>:{line}".format(rank=rank)
        for rank in range(16)
        if rank != 3
        for line in (*FRAME, FOLLOWERS[who])
    ]
    told = [RULE, *GONE[cause].split("\n"), RULE]
    for lines in (told + others, others + told):
        found = findings(LogReader().read(lines), Facts(exit_code=1))[0]
        assert (found.cause, found.hosts) == (cause, ("n3",))
        assert cause == "WorkerLost" or found.ranks == (3,)


def test_a_rank_that_gave_up_waiting_is_not_the_one_to_blame() -> None:
    """Its watchdog aborts it, and Hydra then kills the others."""
    boxes = [
        line
        for rank, signal in ((0, "6 (Aborted)"), (1, "9 (Killed)"))
        for line in (f"=   RANK {rank} PID 8 RUNNING AT n{rank}", f"=   KILLED BY SIGNAL: {signal}")
    ]
    box = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
    lines = [FOLLOWERS["watchdog"].format(rank=0), box, *boxes[:2], box, *boxes[2:]]
    found = findings(LogReader().read(lines), Facts(exit_code=1))[0]
    assert found.cause == "CollectiveTimeout"
