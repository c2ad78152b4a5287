"""A job is suspected only where every rank is known to wait (OBS-2)."""

from __future__ import annotations

import pytest

from mpi_trainer.api import bounds
from mpi_trainer.diagnose import suspicion
from mpi_trainer.layout.agent.quiet import QuietReader

EVENT = "mpi-agent| 1794762138 train-launcher"
ALLREDUCE = (
    "same=1 mpi=1 frames=/app/train.py:41:step|/app/train.py:60:<module> calls=comm.Allreduce"
)
RECEIVE = "same=1 mpi=1 frames=/app/train.py:37:step calls=comm.recv"
COMPUTE = "same=1 mpi=1 frames=/app/train.py:12:fit calls=np.linalg.svd"
MOVING = "same=0 mpi=1 frames=/app/train.py:41:step calls=comm.Allreduce"
SLEEP = "idle=1 same=0 mpi=1 frames=/app/train.py:9:load calls=time.sleep"
IDLE = "idle=1 same=0 mpi=0 frames= calls="
ENDING = "ending=1 mpi=1 frames= calls="
TORCH = (
    "same=1 mpi=0 frames=/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:"
    "2501:all_reduce|/v/lib/python3.11/site-packages/torch/distributed/c10d_logger.py:83:wrapper|"
    "/app/ddp.py:20:main calls=work.wait"
)
IMPORT = (
    "same=1 mpi=1 frames=<frozen_importlib._bootstrap>:241:_call|/app/train.py:2:<module> "
    "calls=import.mpi4py"
)


def said(*places: tuple[str, str], seconds: int = 372, form: str = "1") -> str:
    """What is made of ranks at these places, each with its fields."""
    ranks = sum(_count(which) for which, _ in places)
    reader = QuietReader()
    reader.read_line(
        f"{EVENT} quiet form={form} seconds={seconds} ranks={ranks} groups={len(places)}"
    )
    for which, fields in places:
        reader.read_line(f"{EVENT} place ranks={which} on=w-{which[0]} {fields}")
    return suspicion.text(reader.quiet)


def _count(which: str) -> int:
    runs = [part.split("-") for part in which.split(",")]
    return sum(int(run[-1]) - int(run[0]) + 1 for run in runs)


@pytest.mark.parametrize(
    ("places", "text"),
    [
        (
            [("0-1,3", ALLREDUCE), ("2", RECEIVE)],
            "ranks 0-1,3 wait in MPI_Allreduce (train.py:41); "
            "rank 2 on w-2 has not come there: waits in MPI_Recv (train.py:37)",
        ),
        ([("0-3", ALLREDUCE)], "ranks 0-3 wait in MPI_Allreduce (train.py:41)"),
        (
            [("0-1,3", ALLREDUCE), ("2", SLEEP)],
            "ranks 0-1,3 wait in MPI_Allreduce (train.py:41); "
            "rank 2 on w-2 has not come there: uses no CPU at train.py:9",
        ),
        (
            [("0", RECEIVE), ("1", RECEIVE.replace(":37:", ":52:"))],
            "rank 0 on w-0 waits in MPI_Recv (train.py:37); "
            "rank 1 on w-1 waits in MPI_Recv (train.py:52)",
        ),
        (
            [("0-2", ALLREDUCE), ("3", ENDING)],
            "ranks 0-2 wait in MPI_Allreduce (train.py:41); "
            "rank 3 on w-3 has not come there: waits in MPI_Finalize",
        ),
        (
            [("0-2", TORCH), ("3", SLEEP)],
            "ranks 0-2 wait in torch.distributed.all_reduce (ddp.py:20); "
            "rank 3 on w-3 has not come there: uses no CPU at train.py:9",
        ),
        (
            [("0", IMPORT), ("1", SLEEP)],
            "rank 0 on w-0 waits in MPI_Init (train.py:2); "
            "rank 1 on w-1 has not come there: uses no CPU at train.py:9",
        ),
        ([("0-3", IDLE)], "ranks 0-3 use no CPU"),
        (
            [("0-2", ALLREDUCE), ("3", ALLREDUCE.replace("comm.Allreduce", "comm.Bcast"))],
            "ranks 0-2 wait in MPI_Allreduce (train.py:41); "
            "rank 3 on w-3 has not come there: waits in MPI_Bcast (train.py:41)",
        ),
    ],
)
def test_waiting_ranks_are_told_with_the_one_that_is_missing(
    places: list[tuple[str, str]], text: str
) -> None:
    assert said(*places) == f"no output and no progress for 6m12s: {text}"


@pytest.mark.parametrize(
    "places",
    [
        pytest.param([("0-3", COMPUTE)], id="all compute in one call"),
        pytest.param([("0-2", ALLREDUCE), ("3", COMPUTE)], id="one computes, others wait"),
        pytest.param([("0-3", MOVING)], id="a loop of collectives"),
        pytest.param([("0-2", ALLREDUCE), ("3", MOVING)], id="one goes on"),
        pytest.param([("0-3", "same=1 mpi=1 frames= calls=")], id="no stack"),
        pytest.param(
            [("0-3", ALLREDUCE.replace("calls=comm.Allreduce", "calls=comm.Allreduce,svd"))],
            id="something slow in the same line",
        ),
        pytest.param(
            [("0-3", COMPUTE.replace("np.linalg.svd", "np.add.reduce"))], id="reduce of numpy"
        ),
        pytest.param([("0-3", ALLREDUCE.replace("mpi=1", "mpi=0"))], id="no MPI loaded"),
        pytest.param([("0-3", "ending=1 mpi=0 frames= calls=")], id="ends without MPI"),
        pytest.param([("0-3", IMPORT.replace("import.mpi4py", "work.go"))], id="an import"),
    ],
)
def test_a_rank_that_may_compute_is_no_suspicion(places: list[tuple[str, str]]) -> None:
    assert said(*places) == ""


def test_quick_arguments_of_a_collective_are_no_doubt() -> None:
    quick = ALLREDUCE.replace("comm.Allreduce", "print,float,comm.allreduce,loss.item")
    assert "MPI_Allreduce" in said(("0-3", quick))


def test_another_form_or_a_report_that_is_not_whole_says_nothing() -> None:
    assert said(("0-3", ALLREDUCE), form="2") == ""
    reader = QuietReader()
    reader.read_line(f"{EVENT} quiet form=1 seconds=9 ranks=4 groups=2")
    assert not reader.read_line(f"{EVENT} place ranks=0-2 on=a {ALLREDUCE}")
    assert reader.quiet is None
    # Three ranks of four: the fourth may compute.
    reader.read_line(f"{EVENT} quiet form=1 seconds=9 ranks=4 groups=1")
    reader.read_line(f"{EVENT} place ranks=0-2 on=a {ALLREDUCE}")
    assert reader.quiet is None


@pytest.mark.parametrize("event", ["moving seconds=9", "end rank=0 size=4", "start rank=0 size=4"])
def test_what_goes_on_takes_it_back(event: str) -> None:
    reader = QuietReader()
    reader.read_line(f"{EVENT} quiet form=1 seconds=9 ranks=4 groups=1")
    assert reader.read_line(f"{EVENT} place ranks=0-3 on=a {ALLREDUCE}")
    assert suspicion.text(reader.quiet)
    assert reader.read_line(f"{EVENT} {event}")
    assert suspicion.text(reader.quiet) == ""


def test_many_places_are_told_in_few_words() -> None:
    places = [(str(n), RECEIVE.replace(":37:", f":{n + 10}:")) for n in range(9)]
    text = said(*places)
    assert text.endswith("; 5 more ranks elsewhere")
    assert len(text) < bounds.MESSAGE / 2


def test_hostile_names_stay_printable_and_short() -> None:
    long = f"same=1 mpi=1 frames=/app/{'x' * 3000}.py:41:f calls=comm.Barrier"
    text = said(("0-3", long), ("4", ALLREDUCE.replace("train.py", "\x1b[31mtrain.py")))
    assert text.isprintable()
    assert len(text) < bounds.MESSAGE / 2


def test_a_suspicion_is_found_again_in_a_condition() -> None:
    text = said(("0-3", ALLREDUCE))
    assert suspicion.in_message(f"MPIJob x is running, and {suspicion.WORDS}{text}.") == text
    assert suspicion.in_message("MPIJob ns/train is running.") == ""
    found = suspicion.finding(text)
    assert (found.cause, found.confidence) == ("NoProgress", "suspicion")
    assert text in found.title
