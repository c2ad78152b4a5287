"""What mpirun says between rules of dashes is read as the sentences that it was."""

from __future__ import annotations

from mpi_trainer.diagnose.cause import findings
from mpi_trainer.diagnose.finding import Facts, Finding
from mpi_trainer.diagnose.help_texts import HelpTexts
from mpi_trainer.diagnose.log_reader import LogReader

RULE = "-" * 74


def first(*lines: str) -> Finding:
    return findings(LogReader().read(lines), Facts(exit_code=1))[0]


def test_a_sentence_may_be_broken_anywhere() -> None:
    broken = (
        "Your job has requested more cpus per process(rank) than there",
        "are cpus in a socket:",
    )
    assert first(RULE, *broken, "", "  Cpus/rank: 9", RULE).cause == "BindingImpossible"


def test_what_no_rule_knows_is_shown_from_its_beginning() -> None:
    """SC-006: the last line of such a text says least."""
    text = ("PRTE has met something", "that is in no catalogue.", "", "  Thing: x", "Please retry.")
    finding = first("rank 0 of 2", RULE, *text, RULE, "[l:7] 1 more process has sent help message")
    assert finding.cause == "UnknownFailure"
    assert finding.line == "PRTE has met something that is in no catalogue. Thing: x Please retry."


def test_a_table_of_a_program_is_no_text_of_mpirun() -> None:
    finding = first(RULE, "epoch loss", "    1  0.5", RULE, "giving up")
    assert finding.line == "giving up"


def test_the_first_of_hydras_lines_says_most() -> None:
    finding = first(
        "[mpiexec@l] HYDU_new_thing (lib/x.c:4): the new thing is broken",
        "[mpiexec@l] main (mpiexec.c:2): process manager gave up",
    )
    assert "the new thing is broken" in finding.line


def test_no_more_is_kept_of_a_text_than_a_line_may_be_long() -> None:
    texts = HelpTexts()
    texts.read(RULE)
    for _ in range(100):
        if texts.read("a MPI " * 10_000):
            break
    assert len(texts.first) == 2000
    assert not texts.open
