"""Which parts of a file have come is known after a kill, a full disk and a power cut (CTL-9)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.initializers import parts
from mpi_trainer.initializers.folder import Folder
from mpi_trainer.initializers.model import Item
from mpi_trainer.initializers.parts import Parts
from tests.dataserver import DataServer
from tests.sim.initializers.fetching import Runner

MIB = 1 << 20
ITEM = Item("train.bin", 30 * MIB)


@pytest.fixture
def staging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    monkeypatch.setattr(parts, "CHUNK", MIB)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield Parts(descriptor)
    os.close(descriptor)


def fetch(staging: Parts, *chunks: int) -> set[int]:
    """Fetches these chunks; those that had come before."""
    part = staging.begun(0, ITEM)
    missing = {start // MIB for start, _ in part.missing()}
    for chunk in chunks:
        part.write(chunk * MIB, bytes(MIB))
        part.chunk_done(chunk * MIB)
    part.close()
    return set(range(30)) - missing


def test_a_note_that_was_cut_is_not_read_together_with_the_next(
    staging: Parts, tmp_path: Path
) -> None:
    """On a full disk the end of one is missing: 1 and 5 would be 15."""
    fetch(staging, 3)
    with (tmp_path / "0.done").open("ab") as notes:
        notes.write(b"1")
    assert fetch(staging, 5) == {3}
    assert fetch(staging) == {3, 5}


def test_what_has_come_needs_no_room_once_more(
    server: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or no run could go on on a volume that is more than half full of it."""
    data = os.urandom(3 * MIB)
    (server.root / "train.bin").write_bytes(data)
    monkeypatch.setattr(parts, "CHUNK", MIB)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(parts.Part, "finished", killed)
        with pytest.raises(KeyboardInterrupt):
            runner.here(f"{server.url}/train.bin")
    monkeypatch.setattr(Folder, "free_bytes", lambda _: 2 * MIB)
    assert runner.here(f"{server.url}/train.bin").status == 0
    assert runner.files == {"train.bin": data}


def test_notes_without_their_file_are_not_believed(staging: Parts, tmp_path: Path) -> None:
    fetch(staging, 3)
    (tmp_path / "0.part").unlink()
    assert fetch(staging, 5) == set()
    assert fetch(staging) == {5}
