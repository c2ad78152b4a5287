"""Open MPI's own messages take one line each; no other line is lost, changed or put elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.cli.output.mpi_messages import FRAME, MOST_LINES, MessageFolder
from mpi_trainer.diagnose.rank_lines import Line

ABORT = "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD"
EXITED = "prterun has exited due to process rank 1 with PID 0 on node ab-worker-1 calling"


def line(text: str, rank: int | None = 1) -> Line:
    return Line("launcher", "launcher", "stderr", rank, text)


def folded(*texts: str) -> list[str]:
    folder = MessageFolder[Line]()
    shown = [one.text for text in texts for one in folder.feed(line(text))]
    return shown + [one.text for one in folder.rest()]


def test_messages_about_ends_take_one_line_each() -> None:
    abort = (FRAME, ABORT, "  Proc: [[3190,1],1]", "  Errorcode: 7", "", "NOTE: invoking", FRAME)
    exited = (FRAME, EXITED, '"abort". This may have caused', FRAME)
    assert folded("epoch 1", *abort, *exited, "after") == [
        "epoch 1",
        f"Open MPI: {ABORT} … (7 lines)",
        f"Open MPI: {EXITED} … (4 lines)",
        "after",
    ]


def test_ranks_do_not_wait_for_each_other() -> None:
    folder = MessageFolder[Line]()
    assert folder.feed(line(FRAME)) == []
    assert folder.feed(line("mine", rank=0)) == [line("mine", rank=0)]
    assert folder.feed(line("not a message")) == [line(FRAME), line("not a message")]


def test_a_message_that_never_ends_is_shown_whole() -> None:
    texts = (FRAME, ABORT, *(f"line {n}" for n in range(2 * MOST_LINES)))
    assert folded(*texts) == list(texts)
    assert folded(FRAME, ABORT) == [FRAME, ABORT]


@given(st.lists(st.sampled_from([FRAME, "epoch 1", "", "-" * 73, f" {ABORT}"]), max_size=60))
def test_what_is_no_message_is_shown_as_it_was(texts: list[str]) -> None:
    assert folded(*texts) == texts
