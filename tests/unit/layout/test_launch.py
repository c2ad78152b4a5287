"""Which commands start ranks by themselves (CTL-15)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import UsageError
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.cli.verbs.mpijob.overrides import split_command
from mpi_trainer.layout.launch import LAUNCHERS, SHELLS, mpi_command, starts_ranks

few = settings(max_examples=40)

TABLE = json.loads((Path(__file__).parent / "commands.json").read_text())
"""the dashboard's tests read the same table"""

words = st.lists(st.text(max_size=12), max_size=6).map(tuple)


def shown(command: list[str]) -> str:
    return " ".join(command).replace("\n", " / ") or "(empty)"


@pytest.mark.parametrize("command", TABLE["startRanks"], ids=shown)
def test_command_that_starts_ranks_is_left_alone(command: list[str]) -> None:
    assert starts_ranks(tuple(command))
    assert mpi_command(tuple(command), 8) == tuple(command)


@pytest.mark.parametrize("command", TABLE["doNot"], ids=shown)
def test_any_other_command_is_started_once_per_slot(command: list[str]) -> None:
    assert not starts_ranks(tuple(command))
    assert mpi_command(tuple(command), 8) == ("mpirun", "-n", "8", *command)


@pytest.mark.parametrize(("line", "expected"), TABLE["lines"])
def test_line_of_a_command_is_split_as_a_shell_splits_it(
    line: str, expected: list[str] | None
) -> None:
    if expected:
        assert split_command(line) == tuple(expected)
    else:
        with pytest.raises(UsageError):
            split_command(line)


@pytest.mark.parametrize("launcher", sorted(LAUNCHERS))
def test_every_launcher_is_known_by_name_and_by_path(launcher: str) -> None:
    assert starts_ranks((launcher, "./a"))
    assert starts_ranks((f"/usr/lib64/mpi/bin/{launcher}", "./a"))
    assert not starts_ranks((f"{launcher}x", "./a"))


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_every_shell_is_looked_into(shell: str) -> None:
    assert starts_ranks((shell, "-c", "mpirun ./a"))
    assert not starts_ranks((shell, "-c", "./a"))


@few
@given(words, st.integers(1, 99))
def test_made_command_starts_ranks_and_is_made_once(command: tuple[str, ...], ranks: int) -> None:
    made = mpi_command(command, ranks)
    assert starts_ranks(made)
    assert mpi_command(made, ranks) == made
    assert made[len(made) - len(command) :] == command


@few
@given(st.text(alphabet="mpirun -c\"'\\;&|()#\n=/$ab", max_size=60))
def test_any_shell_line_is_read_to_an_answer(line: str) -> None:
    assert starts_ranks(("sh", "-c", line)) in (True, False)
