"""A kill, a cut or a full disk at any moment leaves a whole checkpoint (CTL-11)."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openshift_ai_sdk.checkpoints import Checkpoints
from openshift_ai_sdk.checkpoints.checkpoint import MARKER, names

AUDITED = frozenset({"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"})
MOST = 500
"""changes of the folder that a save may take"""
CONTENTS = {
    step: {"weights": np.full(200, float(step)), "step": np.array(step)} for step in (1, 2, 3)
}


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def save(folder: Path, *steps: int) -> None:
    """By two ranks of a new attempt, one after the other."""
    first = Checkpoints(folder, rank=0, size=2, keep=1)
    second = Checkpoints(folder, rank=1, size=2)
    for step in steps:
        second.save(step, b"%d" % step)
        first.save(step, CONTENTS[step])


def step_found(folder: Path) -> int:
    """Of the newest; demands that its parts are what was saved, to the last byte."""
    first = Checkpoints(folder, rank=1, size=2).newest()
    assert first is not None
    assert first.read() == b"%d" % first.step
    loaded, wanted = first.arrays(rank=0), CONTENTS[first.step]
    assert loaded.keys() == wanted.keys()
    assert all(np.array_equal(loaded[name], wanted[name]) for name in wanted)
    return first.step


def in_child(body: Callable[[], None]) -> int:
    """How a forked process ends that does this: its status, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            body()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_before(change: int, folder: Path) -> None:
    """Ends this process by SIGKILL before the folder is changed for so manieth a time."""
    left = change

    def hook(event: str, words: tuple[Any, ...]) -> None:
        nonlocal left
        if event in AUDITED and str(folder) in map(os.path.dirname, _paths(folder, words)):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _paths(folder: Path, words: tuple[Any, ...]) -> Iterator[str]:
    """As if all lay in the folder itself; rmtree names files without their folder."""
    for word in words[:2]:
        if isinstance(word, str) and (word.startswith(str(folder)) or "/" not in word):
            yield f"{folder}/{Path(word).name}"


def test_kill_9_before_any_change_of_the_folder_leaves_a_whole_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTL-11: the old one until the new one is whole, and the next attempt goes on from it."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a kill leaves what was written
    save(tmp_path / "template", 1)
    seen, change = [], 0
    while True:
        folder = tmp_path / str(change)
        shutil.copytree(tmp_path / "template", folder)

        def body(change: int = change, folder: Path = folder) -> None:
            kill_before(change, folder)
            save(folder, 2)

        ended = in_child(body)
        seen.append(step_found(folder))
        save(folder, 3)
        assert step_found(folder) == 3
        assert [name.step for name in names(folder)] == [3]
        assert not list(folder.rglob(".*"))
        shutil.rmtree(folder)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        change += 1
        assert change < MOST
    assert change > 20
    assert seen == sorted(seen)
    assert {1, 2} == {*seen}


@pytest.mark.parametrize("room", [*range(0, 400, 40), *range(400, 2600, 200)])
def test_a_disk_that_is_full_at_any_byte_leaves_a_whole_checkpoint(
    tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTL-11: a limit on the size of files fails writes as a full disk does."""
    monkeypatch.setattr("openshift_ai_sdk.checkpoints.checkpoints.PATIENCE", 0.05)
    first = Checkpoints(tmp_path, rank=0, size=2, keep=1)
    second = Checkpoints(tmp_path, rank=1, size=2)
    second.save(1, b"1")
    assert first.save(1, CONTENTS[1])

    def body() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        second.save(2, b"2")
        saved = first.save(2, CONTENTS[2])
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)  # what measures tests writes now
        os._exit(10 if saved else 11)

    ended = in_child(body)
    assert ended in (10, 11)
    assert step_found(tmp_path) == (2 if ended == 10 else 1)
    largest = max(path.stat().st_size for path in tmp_path.rglob("*.part"))
    assert (ended == 10) == (room >= largest)


@pytest.fixture(scope="module")
def two_saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    first, second = (Checkpoints(folder, rank=rank, size=2) for rank in range(2))
    for step in (1, 2):
        second.save(step, b"%d" % step)
        first.save(step, CONTENTS[step])
    return folder


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_no_damage_of_the_newest_is_ever_taken(two_saved: Path, data: st.DataObject) -> None:
    """CTL-11: whatever is cut, removed, changed or grown, contents are those of a save."""
    (newest,) = two_saved.glob("step-000000000002-*")
    before = {path: path.read_bytes() for path in sorted(newest.iterdir())}
    try:
        for path in data.draw(st.lists(st.sampled_from([*before]), max_size=3, unique=True)):
            whole = bytearray(before[path])
            at = data.draw(st.integers(0, len(whole) - 1))
            how = data.draw(st.sampled_from(["cut", "remove", "change", "grow"]))
            if how == "cut":
                del whole[at:]
            elif how == "grow":
                whole.insert(at, data.draw(st.integers(0, 255)))
            elif how == "change":
                whole[at] ^= data.draw(st.integers(1, 255))
            path.write_bytes(whole)
            if how == "remove":
                path.unlink()
        assert step_found(two_saved) in (1, 2)
    finally:
        for path, contents in before.items():
            path.write_bytes(contents)


def test_a_power_cut_finds_parts_on_disk_before_the_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTL-11: contents, then their names, then the marker, then its name."""
    story: list[tuple[str, str]] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(descriptor: int) -> None:
        story.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        real_sync(descriptor)

    def replace(path: Path, target: Path) -> Path:
        story.append(("name", target.name))
        assert ("sync", path.name) in story, f"{target.name} has a name before it is on disk"
        return real_replace(path, target)

    made = Checkpoints(tmp_path, rank=0, size=1)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    made.save(1, b"weights")
    (folder,) = (path.name for path in tmp_path.glob("step-*"))
    part, marker = story.index(("name", "rank-000000.part")), story.index(("name", MARKER))
    between = story[part:marker]
    assert ("sync", folder) in between and ("sync", tmp_path.name) in between
    assert story[-1] == ("sync", folder)
