"""Checkpoints that ranks write into a shared folder, and what the next attempt takes of them."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openshift_ai_sdk.checkpoints import Checkpoint, Checkpoints, checkpoints, files
from openshift_ai_sdk.checkpoints.checkpoint import MARKER


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PATIENCE", 0.2)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    def words() -> str:
        found = "\n".join(r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING)
        caplog.clear()
        return found

    return words


def alone(folder: Path, **options: Any) -> Checkpoints:
    return Checkpoints(folder, rank=0, size=1, **options)


def folders(folder: Path) -> list[int]:
    """The steps of all that is there."""
    return sorted(int(path.name.split("-")[1]) for path in folder.glob("step-*"))


def newest(folder: Path, **options: Any) -> Checkpoint:
    found = alone(folder, **options).newest()
    assert found is not None
    return found


def path_of(folder: Path, step: int) -> Path:
    (found,) = folder.glob(f"step-{step:012d}-*")
    return found


class Ranks:
    """As many ranks as threads, which agree as MPI's ranks would."""

    def __init__(self, size: int) -> None:
        self.size, self._given = size, [0] * size
        self._all_gave, self._all_took = threading.Barrier(size), threading.Barrier(size)

    def agree(self, rank: int) -> Callable[[int], int]:
        def smallest(number: int) -> int:
            self._given[rank] = number
            self._all_gave.wait(10)
            found = min(self._given)
            self._all_took.wait(10)
            return found

        return smallest

    def __call__(self, body: Callable[[int], Any]) -> list[Any]:
        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(body, range(self.size)))


def test_a_new_folder_has_no_checkpoint_and_is_made(tmp_path: Path) -> None:
    made = alone(tmp_path / "new" / "folder")
    assert (made.newest(), made.attempt) == (None, 1)


def test_arrays_bytes_and_written_files_come_back_as_they_were(tmp_path: Path) -> None:
    """CTL-11."""
    arrays = {"file": np.arange(6.0).reshape(2, 3), "lr": 0.5, "a/b": np.array(["x", "y"])}
    made = alone(tmp_path, keep=3)
    assert made.save(1, arrays)
    assert made.save(2, b"any\0bytes")
    assert made.save(3, lambda path: Path(path).write_text("from a function"))
    assert newest(tmp_path).file().read_text() == "from a function"
    (path_of(tmp_path, 3) / MARKER).unlink()
    assert newest(tmp_path).read() == b"any\0bytes"
    (path_of(tmp_path, 2) / MARKER).unlink()
    loaded = newest(tmp_path).arrays()
    assert loaded.keys() == arrays.keys()
    assert all(np.array_equal(loaded[name], arrays[name]) for name in arrays)  # type: ignore[arg-type]


def test_what_needs_unpickling_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    made = alone(tmp_path)
    with pytest.raises(TypeError, match=r"state\['model'\] holds Python objects"):
        made.save(1, {"model": object()})
    with pytest.raises(TypeError, match="give arrays by name, bytes or a function"):
        made.save(1, [1, 2])  # type: ignore[arg-type]
    assert folders(tmp_path) == []


def test_every_start_is_an_attempt_even_where_its_number_is_lost(tmp_path: Path) -> None:
    """CTL-11."""
    assert [alone(tmp_path).attempt for _ in range(3)] == [1, 2, 3]
    alone(tmp_path).save(1, b"")
    (tmp_path / "attempt").write_text("nonsense")
    assert alone(tmp_path).attempt == 5
    assert newest(tmp_path).attempt == 4


def test_the_newest_n_are_kept(tmp_path: Path) -> None:
    made = alone(tmp_path, keep=2)
    for step in (10, 20, 30):
        assert made.save(step, b"%d" % step)
    assert folders(tmp_path) == [20, 30]
    assert newest(tmp_path).read() == b"30"


def test_a_damaged_one_takes_no_whole_ones_place(tmp_path: Path) -> None:
    first = alone(tmp_path)
    assert first.save(1, b"1") and first.save(2, b"2")
    (path_of(tmp_path, 2) / "rank-000000.part").write_bytes(b"?")
    later = alone(tmp_path)
    assert later.newest() is not None and later.save(3, b"3")
    assert folders(tmp_path) == [1, 2, 3]
    assert later.save(4, b"4") and folders(tmp_path) == [3, 4]


def test_a_later_attempt_counts_as_newer_than_a_higher_step_of_an_earlier(tmp_path: Path) -> None:
    """CTL-11: what was passed over once neither comes back nor costs the new one its place."""
    alone(tmp_path).save(10, b"ten")
    alone(tmp_path).save(30, b"thirty")
    (path_of(tmp_path, 30) / "rank-000000.part").write_bytes(b"THIRTY")
    second = alone(tmp_path, keep=1)
    found = second.newest()
    assert found is not None and found.step == 10
    assert second.save(20, b"twenty")
    assert (newest(tmp_path).step, folders(tmp_path)) == (20, [20])


def test_the_last_step_is_not_written_twice_and_none_before_it(tmp_path: Path) -> None:
    made = alone(tmp_path)
    assert made.save(5, b"first") and made.save(5, b"second")
    assert newest(tmp_path).read() == b"first"
    with pytest.raises(ValueError, match="step 4: the last was 5"):
        made.save(4, b"")


def test_a_checkpoint_is_due_every_so_often(tmp_path: Path) -> None:
    made = alone(tmp_path, every=10)
    assert [step for step in range(1, 31) if made.due(step)] == [10, 20, 30]


def test_wrong_ranks_and_intervals_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rank 2 of 2"):
        Checkpoints(tmp_path, rank=2, size=2)
    with pytest.raises(ValueError, match="both are at least 1"):
        alone(tmp_path, keep=0)


@pytest.mark.parametrize(
    "names", [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")]
)
def test_mpi_says_which_rank_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    monkeypatch.setenv(names[0], "3")
    monkeypatch.setenv(names[1], "8")
    made = Checkpoints(tmp_path)
    assert (made.rank, made.size) == (3, 8)


# --- several ranks --------------------------------------------------------------------------------


def test_it_is_whole_when_all_parts_are_there_and_each_rank_reads_its_own(tmp_path: Path) -> None:
    """CTL-11: without a message between the ranks."""
    ranks = [Checkpoints(tmp_path, rank=rank, size=3) for rank in range(3)]
    assert ranks[1].save(7, b"one")
    assert ranks[2].save(7, None)
    assert [made.newest() for made in ranks] == [None, None, None]
    assert ranks[0].save(7, {"zero": np.zeros(2)})
    found = [made.newest() for made in ranks]
    assert [f and (f.step, f.size) for f in found] == [(7, 3)] * 3
    assert found[1] is not None and found[2] is not None
    assert found[1].read() == b"one"
    assert found[2].arrays(rank=0).keys() == {"zero"}
    with pytest.raises(LookupError, match=r"rank 2 has no part of .*, of 3 ranks"):
        found[2].read()


def test_rank_0_waits_for_a_slow_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PATIENCE", 10.0)
    first, second = (Checkpoints(tmp_path, rank=rank, size=2) for rank in range(2))
    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(first.save, 1, b"")
        assert not saving.done()
        second.save(1, b"")
        assert saving.result()


def test_a_missing_part_leaves_the_checkpoint_before(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    """CTL-11."""
    first, second = (Checkpoints(tmp_path, rank=rank, size=2) for rank in range(2))
    second.save(1, b"")
    assert first.save(1, b"good")
    assert not first.save(2, b"lonely")
    assert "step 2 is not saved, the checkpoint before stays: parts of other ranks" in said()
    assert newest(tmp_path).read() == b"good"
    assert folders(tmp_path) == [1]


def test_parts_of_two_attempts_never_mix(tmp_path: Path) -> None:
    """CTL-11: the other rank's part of the same step is there, and of another attempt."""
    Checkpoints(tmp_path, rank=0, size=2)
    Checkpoints(tmp_path, rank=1, size=2).save(5, b"left behind")
    again = Checkpoints(tmp_path, rank=0, size=2)
    assert not again.save(5, b"new")
    assert Checkpoints(tmp_path, rank=1, size=2).newest() is None


def test_a_rank_that_outlived_its_attempt_writes_no_part_of_the_next_one(tmp_path: Path) -> None:
    """It has no `agree` and reads in the folder which attempt it is: but once."""
    first, second = (Checkpoints(tmp_path, rank=rank, size=2) for rank in range(2))
    assert second.save(10, b"old 1") and first.save(10, b"old 0")
    later = Checkpoints(tmp_path, rank=0, size=2)
    assert second.save(20, b"old 1") and not later.save(20, b"new 0")
    assert (newest(tmp_path).step, second.attempt) == (10, 1)


def test_two_that_begin_at_once_do_not_stumble_over_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "glob", lambda folder, _: [folder / ".attempt.gone"])
    assert alone(tmp_path).attempt == 1


def test_an_attempt_that_outlived_its_job_leaves_the_next_ones_unfinished_step(
    tmp_path: Path,
) -> None:
    """CTL-11: its rank 0 goes on saving for a while."""
    old = alone(tmp_path, keep=1)
    Checkpoints(tmp_path, rank=0, size=2)
    assert Checkpoints(tmp_path, rank=1, size=2).save(5, b"to be finished")
    assert old.save(6, b"") and old.save(7, b"")
    assert folders(tmp_path) == [5, 7]


def test_ranks_that_agree_take_the_same_though_one_finds_its_part_damaged(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    """CTL-11."""
    ranks = Ranks(4)

    def train(rank: int) -> int:
        made = Checkpoints(tmp_path, rank=rank, size=4, keep=3, agree=ranks.agree(rank))
        for step in (1, 2, 3):
            assert made.save(step, b"%d of %d" % (step, rank))
        return made.attempt

    assert ranks(train) == [1] * 4
    (path_of(tmp_path, 3) / "rank-000002.part").write_bytes(b"3 of X")
    (path_of(tmp_path, 2) / "rank-000001.part").write_bytes(b"2 of X")

    def resume(rank: int) -> tuple[int, bytes]:
        made = Checkpoints(tmp_path, rank=rank, size=4, agree=ranks.agree(rank))
        found = made.newest()
        assert found is not None
        return made.attempt, found.read()

    assert ranks(resume) == [(2, b"1 of %d" % rank) for rank in range(4)]
    words = said()
    assert "the part of rank 2 is damaged" in words and "the part of rank 1 is damaged" in words


def test_fewer_ranks_share_the_reading_of_more_parts(tmp_path: Path) -> None:
    """CTL-11: the next attempt has two ranks instead of three, and one reads the third's part."""
    saving = [Checkpoints(tmp_path, rank=rank, size=3) for rank in range(3)]
    for made in reversed(saving):
        assert made.save(1, b"data")

    def resume() -> list[Checkpoint | None]:
        ranks = Ranks(2)
        return ranks(
            lambda rank: Checkpoints(tmp_path, rank=rank, size=2, agree=ranks.agree(rank)).newest()
        )

    assert [found and found.read(rank=2) for found in resume()] == [b"data", b"data"]
    (path_of(tmp_path, 1) / "rank-000002.part").write_bytes(b"DATA")
    assert resume() == [None, None]


def test_a_rank_without_room_does_not_keep_rank_0_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Callable[[], str]
) -> None:
    monkeypatch.setattr(checkpoints, "PATIENCE", 10.0)
    first, second = (Checkpoints(tmp_path, rank=rank, size=2) for rank in range(2))

    def full(path: str) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    assert not second.save(1, full)
    assert "No space left" in said()
    assert not first.save(1, b"")
    assert "rank-000001.failed: that rank says why" in said()
    assert folders(tmp_path) == []


# --- being asked to stop --------------------------------------------------------------------------


def test_sigterm_is_a_question_that_the_loop_answers_by_a_checkpoint(tmp_path: Path) -> None:
    """CTL-11."""
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    made = alone(tmp_path, every=100)
    assert not made.due(3) and not made.asked_to_stop
    os.kill(os.getpid(), signal.SIGTERM)
    assert made.due(4) and made.asked_to_stop
    assert heard == [signal.SIGTERM]
    assert made.save(4, b"")


def test_ranks_that_agree_stop_at_the_same_step(tmp_path: Path) -> None:
    """CTL-11: only one of them has got the signal, in the middle of a step."""
    ranks = Ranks(3)

    def train(rank: int) -> tuple[int, bool]:
        made = Checkpoints(tmp_path, rank=rank, size=3, every=100, agree=ranks.agree(rank))
        for step in range(1, 50):
            if rank == 1 and step == 6:
                made._signalled = True
                assert not made.asked_to_stop
            saved = made.due(step) and made.save(step, b"")
            if made.asked_to_stop:
                return step, saved
        return 0, False

    assert ranks(train) == [(6, True)] * 3


def test_a_rank_that_stops_waits_until_the_checkpoint_is_whole(tmp_path: Path) -> None:
    first, second = (Checkpoints(tmp_path, rank=rank, size=2) for rank in range(2))
    second._signalled = True
    assert not second.save(1, b"")
    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(second.save, 2, b"")
        assert first.save(2, b"")
        assert saving.result()


def test_outside_of_the_main_thread_sigterm_is_left_alone(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(alone, tmp_path).result()
    assert signal.getsignal(signal.SIGTERM) is before


# --- files that are not what they should be -------------------------------------------------------


def resealed(path: Path, **changes: Any) -> None:
    files.write_whole(path, {**files.read_whole(path), **changes})


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


PART, WRONG = "rank-000000.part", "its checksum is wrong"
DAMAGE: list[tuple[str, Callable[[Path], Any], str]] = [
    (PART, cut, "the part of rank 0 has 5 of 8 bytes"),
    (PART, lambda path: path.write_bytes(b"new dAta"), f"part of rank 0 is damaged: {WRONG}"),
    (PART, Path.unlink, "the part of rank 0 is missing"),
    (PART, linked, "is a link"),
    (PART, piped, "is not a plain file"),
    (MARKER, cut, WRONG),
    (MARKER, piped, "is not a plain file"),
    (MARKER, lambda path: path.write_text('{"epoch": 3}'), "damaged or not ours"),
    (MARKER, lambda path: path.write_bytes(b"\n" * (1 << 16)), WRONG),
    (MARKER, lambda path: resealed(path, format=2), "format 2 is newer than 1"),
    (MARKER, lambda path: resealed(path, format="1"), "'format' is '1', not a number"),
    (MARKER, lambda path: resealed(path, step=9), "its marker is of another checkpoint"),
    (MARKER, lambda path: resealed(path, parts=[]), "its marker names no parts"),
    (MARKER, lambda path: resealed(path, parts=[[8]]), "what is said of a part is not ours"),
    (MARKER, lambda path: resealed(path, parts=[[-1, ""]]), "'size' is -1, not a number"),
]


@pytest.mark.parametrize(("name", "damage", "why"), DAMAGE, ids=[why for _, _, why in DAMAGE])
def test_what_is_not_whole_is_passed_over_and_the_warning_says_why(
    tmp_path: Path, said: Callable[[], str], name: str, damage: Callable[[Path], Any], why: str
) -> None:
    """CTL-11: cut, foreign, or of a newer format."""
    made = alone(tmp_path)
    made.save(1, b"old data")
    made.save(2, b"new data")
    damage(path_of(tmp_path, 2) / name)
    assert newest(tmp_path).read() == b"old data"
    words = said()
    assert why in words and "passed over" in words


@pytest.mark.parametrize("body", ["[1]", "{", "[" * 100_000])
def test_a_marker_with_a_right_checksum_and_anything_below_is_no_crash(
    tmp_path: Path, said: Callable[[], str], body: str
) -> None:
    alone(tmp_path).save(1, b"")
    seal = hashlib.sha256(body.encode()).hexdigest()
    (path_of(tmp_path, 1) / MARKER).write_text(f"{seal}\n{body}")
    assert alone(tmp_path).newest() is None
    assert "holds no values by name" in said()


def test_what_others_left_in_the_folder_stays_and_is_not_taken(
    tmp_path: Path, said: Callable[[], str]
) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "step-12").mkdir()
    (tmp_path / "step-000000000099-9-00000000000a").write_text("a file")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "step-000000000098-9-00000000000a").symlink_to("elsewhere")
    before = {path.name for path in tmp_path.iterdir()}
    made = alone(tmp_path, keep=1)
    for step in (1, 2):
        made.save(step, b"")
    assert made.attempt == 1 and before < {path.name for path in tmp_path.iterdir()}
    assert newest(tmp_path).step == 2
    (tmp_path / "elsewhere" / MARKER).write_text("theirs")
    assert made.save(3, b"") and newest(tmp_path).step == 3
    assert (tmp_path / "elsewhere" / MARKER).exists() and not said()


def test_a_newer_version_keeps_its_checkpoints(tmp_path: Path) -> None:
    alone(tmp_path).save(9, b"")
    resealed(path_of(tmp_path, 9) / MARKER, format=2)
    made = alone(tmp_path, keep=1)
    made.save(1, b"")
    made.save(2, b"")
    assert folders(tmp_path) == [2, 9]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("torch")])
def test_a_full_disk_leaves_the_checkpoint_before_and_no_rest(
    tmp_path: Path, said: Callable[[], str], error: Exception
) -> None:
    """CTL-11."""
    made = alone(tmp_path)
    assert made.save(1, b"good")

    def full(path: str) -> None:
        Path(path).write_bytes(b"half")
        raise error

    assert not made.save(2, full)
    assert f"step 2 is not saved, the checkpoint before stays: {error}" in said()
    assert (newest(tmp_path).read(), folders(tmp_path)) == (b"good", [1])
    assert made.save(3, b"room again")


def test_it_imports_nothing_but_the_standard_library(tmp_path: Path) -> None:
    program = (
        "import json, sys; before = set(sys.modules); import openshift_ai_sdk.checkpoints as c; "
        f"c.Checkpoints({str(tmp_path)!r}).save(1, b''); "
        "print(json.dumps(sorted(m.partition('.')[0] for m in set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(json.loads(done.stdout)) <= {*sys.stdlib_module_names, "openshift_ai_sdk"}
