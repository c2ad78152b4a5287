"""The scripts as pods get them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import mpi_trainer.layout.agent
from mpi_trainer.layout.agent import scripts

SOURCES = sorted(Path(mpi_trainer.layout.agent.__file__).parent.glob("*.sh"))


def understood(script: str, path: Path) -> list[str]:
    """What a shell has understood, as it would write it; empty lines carry no meaning outside of
    strings, and inside of them there are none."""
    path.write_text(script)
    command = ["bash", "--norc", "--pretty-print", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return [line for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_shell_understands_the_same_with_and_without_comments(
    source: Path, tmp_path: Path
) -> None:
    whole, carried = source.read_text(), scripts.text(source.stem)
    assert understood(carried, tmp_path / "a") == understood(whole, tmp_path / "b")
    assert len(carried) < len(whole)


def test_a_word_that_is_lost_would_be_noticed(tmp_path: Path) -> None:
    whole = scripts.text("rank")
    assert understood(whole.replace("mt_orphan=1\n", ":\n"), tmp_path / "a") != understood(
        whole, tmp_path / "b"
    )
