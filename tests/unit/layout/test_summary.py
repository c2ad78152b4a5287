"""The agent's last words: what the shell writes, Python reads."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.decide import agent_summary, permanent_failures, reasons
from mpi_trainer.decide.observed import End, Observed, ObservedPod
from mpi_trainer.layout.agent import launcher_log
from mpi_trainer.layout.agent.summary import (
    BadRank,
    Cause,
    OnHost,
    Raised,
    Summary,
    most_ranks,
    parse,
    ranks,
)

TEXT = """mpi-agent 1
level full
ended RankDied 143
text rank 1 on train-worker-1 ended with signal 9, and 2 others of 4 have gone on for 10 s
world size=4 started=4 ended=1 lost=1 runs=2
bad 1 train-worker-1 signal=9 pid=77 oom=1
raised 1 train-worker-1 /app/train.py:7 ValueError: no such label: 7
lost 3 train-worker-1
open 0,2 train-worker-0
host train-worker-0 0,2 peak=1048576 oom=0
host train-worker-1 1,3 peak=- oom=-
"""


def test_every_line_is_read() -> None:
    assert parse(TEXT) == Summary(
        level="full",
        reason="RankDied",
        code=143,
        text="rank 1 on train-worker-1 ended with signal 9, "
        "and 2 others of 4 have gone on for 10 s",
        size=4,
        started=4,
        ended=1,
        runs=2,
        bad=(BadRank(1, "train-worker-1", signal=9, pid=77, oom=True),),
        raised=(Raised(1, "train-worker-1", "/app/train.py:7", "ValueError: no such label: 7"),),
        lost=(OnHost("train-worker-1", ranks("3")),),
        open=(OnHost("train-worker-0", ranks("0,2")),),
        hosts=(
            OnHost("train-worker-0", ranks("0,2"), 1048576, 0),
            OnHost("train-worker-1", ranks("1,3")),
        ),
    )


@pytest.mark.parametrize("text", ["", "Traceback (most recent call last):\n", "not mpi-agent 1"])
def test_words_of_another_program_are_no_summary(text: str) -> None:
    assert not parse(text)


def test_a_log_before_the_summary_is_passed_over() -> None:
    """A kubelet may put the end of the log before it."""
    assert parse(f"some log\n{TEXT}") == parse(TEXT)


@given(st.text(), st.integers(0, len(TEXT)))
def test_no_text_breaks_the_reader(noise: str, cut: int) -> None:
    parse(noise)
    assert parse(TEXT[:cut] + noise) is not None
    agent_summary.observed_ranks(parse(TEXT[:cut] + noise), 1)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", (0,)),
        ("0-3,7", (0, 1, 2, 3, 7)),
        ("7,0-3,2-4", (0, 1, 2, 3, 4, 7)),
        ("", ()),
        ("3-1", ()),
        ("a", ()),
    ],
)
def test_ranges_of_ranks(text: str, numbers: tuple[int, ...]) -> None:
    found = ranks(text)
    assert tuple(found) == numbers
    assert len(found) == len(numbers)
    assert all((number in found) == (number in numbers) for number in range(9))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=1))
def test_ranges_are_read_as_they_are_written(runs: list[tuple[int, int]]) -> None:
    found = ranks(",".join(f"{low}-{low + more}" for low, more in runs))
    assert set(found) == {n for low, more in runs for n in range(low, low + more + 1)}
    assert ranks(str(found)) == found
    assert len(found) == len(set(found))


BOMBS = [
    "host a 0-999999",
    "lost 0-999999999999999999 a",
    "host a " + ",".join(["0-999999"] * 440),
    "\n".join(f"host h{n} 0-99999" for n in range(150)),
    "foreign 0-5000 a",
]


@pytest.mark.parametrize("lines", BOMBS)
def test_summary_of_more_ranks_than_the_job_can_have_is_told_as_unreadable(lines: str) -> None:
    """S-2: one line of 50 bytes was 354 MiB."""
    text = f"mpi-agent 1\nlevel full\nended Command 3\n{lines}\n"
    tracemalloc.start()
    try:
        said = parse(text, most_ranks(2))
        seen = agent_summary.observed_ranks(said, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(text) + 100_000
    assert seen == ()
    assert "cannot be read" in agent_summary.launcher_end(End(code=3), said).message
    assert "at most 3072 are read" in said.text


def test_ranks_beyond_the_slots_of_a_small_job_are_read() -> None:
    """mpirun --oversubscribe starts as many as it is told to."""
    said = parse("mpi-agent 1\nlevel full\nended Command 0\nhost a 0-99\n", most_ranks(1))
    assert len(agent_summary.observed_ranks(said, 1)) == 100


def test_ranks_are_seen_as_the_summary_says() -> None:
    seen = {r.rank: r for r in agent_summary.observed_ranks(parse(TEXT), attempt=2)}
    assert seen[1].end == End(signal=9, reason="OOMKilled")
    assert [seen[n].end for n in (0, 2, 3)] == [None, None, None]
    assert {r.attempt for r in seen.values()} == {2}
    assert (seen[3].pod, seen[3].size) == ("train-worker-1", 4)


def test_ranks_that_are_not_complained_of_ended_well() -> None:
    said = parse(
        "mpi-agent 1\nlevel full\nended Command 0\nworld size=2\nhost w 0-1 peak=- oom=-\n"
    )
    assert [r.end for r in agent_summary.observed_ranks(said, 1)] == [End(code=0), End(code=0)]


def test_the_launchers_end_carries_the_agents_reason_and_words() -> None:
    end = agent_summary.launcher_end(End(code=106, reason="Error", message=TEXT), parse(TEXT))
    assert (end.code, end.reason) == (106, "RankDied")
    assert end.message.startswith("rank 1 on train-worker-1 ended with signal 9")


def test_a_command_that_failed_by_itself_is_told_with_what_was_raised() -> None:
    text = TEXT.replace("RankDied", "Command").replace("text ", "words ")
    end = agent_summary.launcher_end(End(code=1, reason="Error"), parse(text))
    assert end.reason == "Error"
    assert (
        end.message
        == "rank 1 on train-worker-1 raised ValueError: no such label: 7 at /app/train.py:7"
    )


LOST = """mpi-agent 1
level full
ended Command 42
cause RanksLost - -
world size=2 started=2 ended=0 lost=2 runs=1
lost 0 train-worker-0
lost 1 train-worker-1
host train-worker-0 0 peak=- oom=-
host train-worker-1 1 peak=- oom=-
"""
LOG = (
    "step 7: Abort(oops) on node x",
    "Abort(42) on node 1 (rank 0 in comm 3): application called MPI_Abort(comm=0x84, 42)",
    "Abort(5) on node 0 (rank 0 in comm 0): Fatal error in internal_Recv: Other MPI error",
)


def test_a_rank_that_called_abort_is_blamed_by_its_own_words() -> None:
    """Hydra ends every rank at once, with whoever would have recorded the end."""
    said = agent_summary.with_logged_cause(parse(LOST), launcher_log.first_cause(LOG))
    assert said.cause == Cause("RankFailed", 1, "train-worker-1")
    assert said.text == "rank 1 on train-worker-1 has ended all ranks by MPI_Abort(42)"


def test_a_rank_that_was_seen_to_fail_stays_blamed() -> None:
    """Ranks that lose another print the same line."""
    text = LOST.replace("RanksLost - -", "RankKilled 0 train-worker-0")
    assert agent_summary.with_logged_cause(parse(text), launcher_log.first_cause(LOG)) == parse(
        text
    )


def test_a_log_without_an_abort_accuses_nobody() -> None:
    assert agent_summary.with_logged_cause(parse(LOST), launcher_log.first_cause(LOG[:1])) == parse(
        LOST
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("Executable: /app/train", "Node: train-worker-1.train.default.svc"),
        ("   Executable: /app/train", "   Node: train-worker-1.train.default.svc"),
        ("   Node:       train-worker-1", "   Executable: /app/train"),
    ],
    ids=["openmpi4", "openmpi5-no-access", "openmpi5-not-found"],
)
def test_the_worker_that_lacks_the_program_is_named(lines: tuple[str, str]) -> None:
    """Open MPI's daemons look for it themselves, so that no rank is ever seen there."""
    box = [
        "mpirun was unable to launch the specified application as it could not access",
        *lines,
    ]
    said = parse(LOST.replace("RanksLost - -", "CommandFailed - -"))
    found = agent_summary.with_logged_cause(said, launcher_log.first_cause(box))
    assert found.cause == Cause("StartFailed", None, "train-worker-1")
    assert found.text == "train-worker-1 has no /app/train that it could run"
    assert (
        agent_summary.with_logged_cause(said, launcher_log.first_cause(["Node: train-worker-1"]))
        == said
    )


VICTIM = """mpi-agent 1
level full
ended Command 14
cause RankFailed 0 train-worker-0
world size=3 started=3 ended=3 lost=0 runs=1
bad 0 train-worker-0 status=14 pid=43 oom=0
bad 1 train-worker-1 signal=15 pid=44 oom=0
bad 2 train-worker-2 signal=15 pid=45 oom=0
host train-worker-0 0 peak=- oom=-
host train-worker-1 1 peak=- oom=-
host train-worker-2 2 peak=- oom=-
"""


def test_a_rank_that_lost_a_killed_one_is_not_to_blame() -> None:
    """Open MPI 5: leaving with a code may be seen sooner than dying by a signal."""
    log = (
        "[0] [train-worker-0:00000] *** An error occurred in Socket closed",
        "[0] [train-worker-0:00000] *** reported by process [4020764673,0]",
    )
    said = agent_summary.with_logged_cause(parse(VICTIM), launcher_log.first_cause(log))
    assert said.cause == Cause("RankKilled", 1, "train-worker-1")
    assert said.text == (
        "rank 1 on train-worker-1 was ended by signal 15 (SIGTERM), and rank 0 has lost it"
    )
    # An exit code that the program chose itself.
    assert agent_summary.with_logged_cause(
        parse(VICTIM), launcher_log.first_cause(log[1:])
    ) == parse(VICTIM)


def test_a_script_that_is_not_there_is_told_in_pythons_words() -> None:
    """L-4: so that it is not tried again."""
    line = "[0] python3: can't open file '/nosuch.py': [Errno 2] No such file or directory"
    said = parse(VICTIM.replace("status=14", "status=2").replace("Command 14", "Command 2"))
    found = agent_summary.with_logged_cause(said, launcher_log.first_cause([line]))
    assert found.text == "can't open file '/nosuch.py': [Errno 2] No such file or directory"
    end = agent_summary.launcher_end(End(code=2), found)
    pod = ObservedPod("train-launcher", "launcher", "l", "Failed", end=end)
    seen = Observed((pod,), agent_summary.observed_ranks(found, 1))
    assert permanent_failures.reason(pod, seen) == reasons.BAD_ARGUMENTS
