"""What is kept of attempts that ended (W-7, W-9): bounded, the newest first to have room."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds.annotations import ATTEMPTS
from mpi_trainer.decide import history
from mpi_trainer.decide.history import NO_ROOM, SUSPENDED, Attempt, LogTail
from mpi_trainer.decide.observed import Failure, Record
from mpi_trainer.diagnose.finding import Finding

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def failed(number: int, lines: int = 3, message: str = "exit code 1") -> Attempt:
    text = "\n".join(f"attempt {number} line {n}" for n in range(lines))
    words = (LogTail("pi-launcher", text),)
    return Attempt(number, "LauncherPodFailed", message, began=NOW, ended=NOW, words=words)


def all_of(*attempts: Attempt) -> history.History:
    found: history.History = ()
    for one in attempts:
        found = history.with_attempt(found, one)
    return found


def size(found: history.History) -> int:
    return len((history.to_json(found) or "").encode())


def test_history_is_read_as_it_was_written() -> None:
    found = all_of(failed(1), failed(2))
    assert history.read({ATTEMPTS: history.to_json(found) or ""}) == found


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"attempt": "x"}]', "[" * 5000, "x" * 20_000])
def test_annotation_that_no_controller_wrote_is_no_history(text: str) -> None:
    assert history.read({ATTEMPTS: text}) == ()


def test_attempt_that_is_told_twice_is_kept_once() -> None:
    assert all_of(failed(1), failed(2, lines=1), failed(2, lines=2)) == all_of(
        failed(1), failed(2, lines=2)
    )


def test_host_name_of_many_letters_costs_no_attempt() -> None:
    found = all_of(failed(1), msgspec.structs.replace(failed(2), host="h" * 2 * bounds.ATTEMPTS))
    assert [one.attempt for one in found] == [1, 2] and size(found) <= bounds.ATTEMPTS


@pytest.mark.parametrize("lines", [1, 80, 1000])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_all_attempts_together_stay_within_their_bound(lines: int, count: int) -> None:
    found = all_of(*(failed(n, lines) for n in range(1, count + 1)))
    assert size(found) <= bounds.ATTEMPTS
    assert found[-1].attempt == count
    assert found[-1].words[0].text.endswith(f"line {lines - 1}")
    assert len(found) == min(count, history.MOST)


@pytest.mark.parametrize("letter", ["\x01", '"', "é", "💥", "\\"])
def test_text_that_grows_when_it_is_written_stays_within_the_bound(letter: str) -> None:
    text = "\n".join([letter * 500] * 100)
    one = Attempt(1, "x", letter * 5000, words=(LogTail("a", text), LogTail("b", text)))
    for count in range(1, 40):
        found = all_of(*(msgspec.structs.replace(one, attempt=n) for n in range(count)))
        assert size(found) <= bounds.ATTEMPTS


def test_older_words_make_room_and_say_so() -> None:
    found = all_of(*(failed(n, 400) for n in range(1, 30)))
    newest, older = found[-1].words[0], found[-2].words[0]
    assert len(newest.text) > len(older.text) > 100
    assert newest.cut and older.cut
    assert newest.text.startswith("attempt 29 line ")  # whole lines only
    assert found[0].words == () and found[0].silence == NO_ROOM


def test_earlier_message_keeps_its_beginning_and_its_end() -> None:
    long = f"Launcher x ended with exit code 1: {'banner ' * 100}; rank 1 on w was the first"
    first, _ = all_of(failed(1, message=long), failed(2))
    assert len(first.message) <= history.LONGEST_MESSAGE
    assert first.message.startswith("Launcher x") and first.message.endswith("was the first")


def test_job_that_succeeded_keeps_no_words() -> None:
    (kept,) = history.without_output(all_of(failed(1)))
    assert kept.words == () and kept.message == "exit code 1"


def test_failure_that_a_decision_records_is_an_attempt_that_ended() -> None:
    told = Failure(2, "RankDied", "Rank 3 on pi-worker-1 has died; so …", "pi-launcher")
    before = Record(attempt=2, failures=(Failure(1, "x", "y"),))
    after = Record(attempt=3, failures=(*before.failures, told), retry_at=NOW)
    found = history.ended_attempt(before, after, NOW)
    assert found == Attempt(2, "RankDied", told.message, ended=NOW, rank=3, host="pi-worker-1")
    assert history.ended_attempt(before, before, NOW) is None


def test_suspension_ends_an_attempt_without_a_failure() -> None:
    found = history.ended_attempt(Record(), Record(attempt=2, retry_at=NOW), NOW)
    assert found == Attempt(1, SUSPENDED, ended=NOW)


def test_history_that_fills_its_bound_can_be_read() -> None:
    """One byte over it, and nothing of it is read any more."""
    silent = "the launcher's pod was gone before its log could be read"
    before = tuple(
        Attempt(n, message="m" * 230, host="h" * 100, pod="p" * 60, silence=silent)
        for n in range(1, 32)
    )
    room = bounds.ATTEMPTS - size(before)
    for length in range(room - 120, room):
        found = history.with_attempt(before, Attempt(32, host="h" * length, silence=silent))
        assert history.read({ATTEMPTS: history.to_json(found) or ""}) == found


def test_forged_numbers_are_no_history() -> None:
    """Of 4,300 digits Python writes no successor: every look at the job would fail."""
    for field in ("attempt", "rank"):
        forged = {"attempt": 1, field: int("9" * 4300)}
        assert history.read({ATTEMPTS: msgspec.json.encode([forged]).decode()}) == ()


def test_only_the_last_attempt_keeps_its_findings_and_each_its_cause() -> None:
    found = (Finding("OutOfMemory", "certain", "Memory", "More memory.", (1,), ("w-1",), "Killed"),)
    kept = all_of(*(history.with_findings(failed(n, 400), found) for n in range(1, 40)))
    assert size(kept) <= bounds.ATTEMPTS and len(kept) == history.MOST
    assert {one.cause for one in kept} == {"OutOfMemory"}
    assert [one.attempt for one in kept if one.findings] == [39]
    read = history.read({ATTEMPTS: history.to_json(kept) or ""})
    assert history.findings(read) == history.findings(read, 39) == found
    assert history.findings(read, 40) == history.findings(()) == ()
    assert history.findings(history.without_output(read)) == ()
