"""The agent's scripts tell facts: what they mean is concluded in Python alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mpi_trainer.layout.agent
from mpi_trainer.decide import reasons
from mpi_trainer.diagnose.rules import CATALOGUE

SCRIPTS = sorted(Path(mpi_trainer.layout.agent.__file__).parent.glob("*.sh"))
OF_RANKS = ("RankFailed", "RankKilled", "RanksLost", "CommandFailed", "StartFailed")
NAMES = {*reasons.OF_AGENT, *OF_RANKS, "ConnectionLost", "OutOfMemory", *CATALOGUE}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_no_script_names_a_reason_or_a_cause(script: Path) -> None:
    words = set(re.findall(r"[A-Za-z_]+", script.read_text()))
    assert not words & NAMES
    assert not {word for word in words if word.startswith("blame")}
