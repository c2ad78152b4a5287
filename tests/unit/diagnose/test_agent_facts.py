"""What the agent's facts mean: who is to blame, where the order of ends must be read with care."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.diagnose import agent_facts
from mpi_trainer.layout.agent.summary import Cause, Summary

PRTERUN = "prterun-train-launcher-34@1"


def said(*lines: str, ended: str = "command 1", name: str = "34", **world: object) -> Summary:
    """A summary of three ranks that all have started, unless said otherwise."""
    given = {"size": 3, "started": 3, "ended": 3, "lost": 0, "runs": 1, "by": "openmpi", **world}
    counts = " ".join(f"{key}={value}" for key, value in given.items())
    head = ("mpi-agent 2", "level full", f"ended {ended}", f"world {counts} name={name}")
    return agent_facts.read("\n".join((*head, *lines)) + "\n")


def blamed(found: Summary) -> str:
    cause = found.cause or Cause("nothing")
    return f"{cause.reason} {'-' if cause.rank is None else cause.rank} {cause.pod or '-'}"


def bad(rank: int, how: str, at: int = 100, oom: int = 0, orphan: int = 0) -> str:
    return f"bad {rank} w-{rank} {how} pid=44 oom={oom} at={at} orphan={orphan}"


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([bad(1, "status=3")], "RankFailed 1 w-1"),
        ([bad(1, "signal=11")], "RankKilled 1 w-1"),
        ([bad(1, "signal=9", oom=1)], "OutOfMemory 1 w-1"),
        ([bad(1, "signal=9", orphan=1)], "DaemonLost - w-1"),
        (["dropped w-2 up closed", bad(1, "status=3")], "ConnectionLost - w-2"),
        (["dropped w-2 down Connection refused"], "WorkerLost - w-2"),
        (["daemon w-1 127"], "DaemonFailed - w-1"),
        (["daemon w-1 1", "daemon w-2 1"], "CommandFailed - -"),
        (["daemon w-1 1", "daemon w-2 127"], "DaemonFailed - w-2"),
        (["orphans w-2"], "DaemonLost - w-2"),
        ([], "CommandFailed - -"),
    ],
)
def test_a_command_that_failed_is_blamed_on_what_was_seen_first(
    lines: list[str], answer: str
) -> None:
    """OBS-2"""
    assert blamed(said(*lines)) == answer


@pytest.mark.parametrize(
    ("name", "lines", "answer"),
    [
        pytest.param(
            "34",
            [bad(1, "signal=15", 300), "well 0 w-0 at=0 count=1"],
            "RankLeft 0 w-0",
            id="left-first",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "status=14", 0), "well 1 w-1 at=1 count=1"],
            "RankLeft 1 w-1",
            id="left-a-moment-later",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "status=14", 0), bad(2, "signal=15", 25), "well 1 w-1 at=1 count=1"],
            "RankLeft 1 w-1",
            id="left-and-others-were-ended",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "status=14", 0), "well 1 w-1 at=90 count=1"],
            "RankFailed 0 w-0",
            id="much-later",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "status=14", 0), "well 1 w-1 at=1 count=2"],
            "RankFailed 0 w-0",
            id="14-of-its-own-while-all-end",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "signal=15", 0), "well 1 w-1 at=1 count=1"],
            "RankKilled 0 w-0",
            id="caught-SIGTERM",
        ),
        pytest.param(
            "34",
            [bad(0, "status=14", 100), "well 1 w-1 at=101 count=1"],
            "RankFailed 0 w-0",
            id="14-says-nothing-where-another-mpi-runs",
        ),
        pytest.param(
            "34",
            [bad(1, "signal=9"), "orphans w-2"],
            "RankKilled 1 w-1",
            id="one-was-killed-and-daemons-followed",
        ),
        pytest.param(
            "34",
            [bad(0, "signal=15"), bad(1, "signal=15"), "orphans w-2"],
            "DaemonLost - w-2",
            id="a-daemon-is-gone-and-ranks-were-ended",
        ),
        pytest.param(
            "34",
            [bad(0, "signal=15", 100), bad(1, "status=7", 150)],
            "RankFailed 1 w-1",
            id="one-of-its-own-is-seen-later",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "status=14", 112), bad(1, "signal=15", 112), bad(2, "signal=15", 137)],
            "RankKilled 1 w-1",
            id="one-was-terminated-and-another-missed-it",
        ),
        pytest.param(
            PRTERUN,
            [bad(0, "status=14", 112), bad(1, "signal=15", 137), bad(2, "signal=15", 138)],
            "RankFailed 0 w-0",
            id="14-of-its-own-and-prterun-ended-the-rest",
        ),
        pytest.param(
            "34",
            [bad(0, "status=14", 112), bad(1, "signal=15", 112)],
            "RankFailed 0 w-0",
            id="14-says-nothing-elsewhere",
        ),
    ],
)
def test_what_only_followed_is_told_from_what_began_it(
    name: str, lines: list[str], answer: str
) -> None:
    """OBS-2: Open MPI 5 ends a rank with 14 when it has lost another."""
    assert blamed(said(*lines, name=name)) == answer


def test_hydra_s_daemons_never_terminate() -> None:
    lines = (bad(1, "signal=15"), "orphans w-2")
    assert blamed(said(*lines, by="hydra")) == "RankKilled 1 w-1"


def test_a_rank_that_was_stopped_with_its_command_is_not_looked_behind() -> None:
    stopped = said(bad(1, "signal=15"), "orphans w-2", ended="command 143 stopped=1")
    assert blamed(stopped) == "RankKilled 1 w-1"


@pytest.mark.parametrize("number", [9, 11], ids=["killed", "crashed"])
def test_a_rank_that_aborted_is_told_so_however_it_ended(number: int) -> None:
    """OBS-2: MPICH 5 may crash while it ends all ranks, or be killed with them."""
    found = said(bad(1, f"signal={number}"), "aborted 1 w-1 42", "orphans w-2", by="hydra")
    assert blamed(found) == "RankFailed 1 w-1"
    assert found.text == "rank 1 on w-1 has ended all ranks by MPI_Abort(42)"


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["aborted 1 w-1 42", "lost 0-2 w-1"], "RankFailed 1 w-1"),
        (["aborted 1 w-1 15", "aborted 2 w-1 15", "lost 0-2 w-1"], "RanksLost - -"),
        (["raised 1 w-1 - ValueError: x", "lost 0-2 w-1"], "RankFailed 1 w-1"),
        (["raised 1 w-1 - A", "raised 2 w-1 - A", "lost 0-2 w-1"], "RanksLost - -"),
        (["lost 2 w-1"], "RanksLost 2 w-1"),
        (["lost 2 w-0", "lost 0 w-1"], "RanksLost - -"),
    ],
)
def test_of_lost_ranks_only_the_one_that_ended_all_is_to_blame(
    lines: list[str], answer: str
) -> None:
    """OBS-2: MPICH may lose its line on its way to the log."""
    assert blamed(said(*lines, ended="command 255", lost=3)) == answer


@pytest.mark.parametrize(
    ("started", "daemons", "answer"),
    [
        (1, ["daemon w-1 127"], "DaemonFailed - w-1"),
        (3, ["daemon w-1 127"], "RanksLost 0 w-0"),
        (1, [], "RanksLost 0 w-0"),
    ],
)
def test_a_rank_is_not_to_blame_for_a_daemon_that_another_host_lacks(
    started: int, daemons: list[str], answer: str
) -> None:
    """OBS-2: one host's ranks may run before another's daemon turns out to be missing."""
    assert blamed(said(*daemons, "lost 0 w-0", started=started, lost=1)) == answer


def test_ranks_that_never_came_are_told_with_their_host() -> None:
    found = said(bad(0, "signal=15"), "absent w-2", started=2)
    assert blamed(found) == "StartFailed - w-2"
    assert found.text == "only 2 of 3 ranks have started, none on w-2"
    several = said(bad(0, "signal=15"), "absent w-1", "absent w-2", started=1)
    assert blamed(several) == "StartFailed - -"


@pytest.mark.parametrize(
    ("ended", "lines", "answer", "words"),
    [
        ("no-ssh -", [], "NoSsh - -", "openssh-client"),
        ("no-names - seconds=110", [], "WorkersMissing - -", "dnsPolicy"),
        (
            "no-answer - seconds=110",
            ["waits 1 2", "down w-1 ssh: connect to w-1: Connection timed out."],
            "WorkersMissing - -",
            "after 110 s there is no answer from 1 of 2 workers: w-1 (Connection timed out)",
        ),
        (
            "silent - host=2 pod=w-1 seconds=21",
            ["down w-1 closed"],
            "WorkerLost - w-1",
            "worker w-1 has not been heard of for 21 s (closed)",
        ),
        ("silent - host=0 pod=l seconds=21", [], "WorkerLost - l", "launcher l has not been"),
        ("orphans - world=1 pod=w-1", [], "DaemonLost - w-1", "the MPI daemon on w-1 is gone"),
        (
            "bad 143 world=1 living=2 seconds=10",
            [bad(1, "signal=9", oom=1)],
            "RankDied 1 w-1",
            "rank 1 on w-1 ended with signal 9 (out of memory), and 2 others of 3 have gone on "
            "for 10 s",
        ),
        (
            "bad 143 world=1 living=2 seconds=10",
            ["lost 1 w-1"],
            "RankDied 1 w-1",
            "rank 1 on w-1 has vanished, and 2",
        ),
        (
            "over 143 world=1 seconds=10",
            [bad(0, "signal=15", 100), bad(1, "status=7", 150)],
            "RankDied 1 w-1",
            "rank 1 on w-1 failed, none is left, and mpirun has gone on for 10 s",
        ),
        (
            "stuck 143 rank=1 pod=w-1",
            ["raised 1 w-1 /a.py:3 ValueError: no"],
            "RankStuck 1 w-1",
            "rank 1 on w-1 has failed (ValueError: no at /a.py:3) and waits in MPI_Finalize",
        ),
        ("unstarted 143 started=0 seconds=99", [], "StartStuck - -", "no rank in 99 s"),
        (
            "unstarted 143 world=1 started=1 size=3 seconds=99",
            [],
            "StartStuck - -",
            "only 1 of 3 ranks have started in 99 s",
        ),
        ("unanswered - from=w-0 pod=w-1", [], "Unreachable - w-1", "from w-0 to w-1 get no answer"),
        (
            "left - world=1 living=2",
            ["well 1 w-1 at=5 count=1"],
            "RankLeft 1 w-1",
            "without MPI_Finalize, and the other 2 ranks wait for it",
        ),
        ("daemon - ", ["daemon w-1 127"], "DaemonFailed - w-1", "exit code 127, and mpirun waits"),
        ("idle - seconds=60", [], "MpirunStuck - -", "nothing of them is left"),
    ],
)
def test_each_proof_has_its_reason_and_words(
    ended: str, lines: list[str], answer: str, words: str
) -> None:
    """AC-15: as the agent of before named them."""
    found = said(*lines, ended=ended)
    assert blamed(found) == answer
    assert found.verdict == answer.split()[0]
    assert words in found.text


def test_a_command_that_went_well_has_no_cause_unless_its_ranks_did_not() -> None:
    assert said("host w-0 0-2 peak=- oom=-", ended="command 0").cause is None
    assert blamed(said(bad(1, "status=3"), ended="command 0")) == "RankFailed 1 w-1"


def test_what_an_older_agent_has_named_stays_as_it_is() -> None:
    text = "mpi-agent 1\nlevel full\nended RankDied 143\ntext words\ncause RankDied 1 w-1\n"
    found = agent_facts.read(text)
    assert (found.verdict, found.text) == ("RankDied", "words")
    assert found.cause == Cause("RankDied", 1, "w-1")


LINES = ["bad 1 w x=", "well 1", "dropped", "daemon w", "aborted 1 w", "lost 0-1 w", "ended x 1"]


@given(st.lists(st.sampled_from([*LINES, bad(1, "signal=9"), "orphans", "raised 1"])), st.text())
def test_no_facts_break_the_conclusion(lines: list[str], noise: str) -> None:
    agent_facts.read("mpi-agent 2\n" + "\n".join((*lines, noise)))


def test_a_text_stays_short() -> None:
    found = said(f"raised 1 w-1 - {'x' * 3000}", ended="stuck 1 rank=1 pod=w-1")
    assert len(found.text) == agent_facts.LONGEST
