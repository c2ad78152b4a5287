"""What is said of errors that the machine causes (S-9), and of command lines that are wrong."""

from __future__ import annotations

import errno

import click
import pytest
from click.testing import CliRunner

from mpi_trainer.cli import context
from mpi_trainer.cli.app import SHORT, odh
from mpi_trainer.cli.output.errors import explained, misused


def test_folder_in_another_users_home_is_told_with_a_remedy() -> None:
    said = explained(PermissionError(errno.EACCES, "Permission denied", "/root/.local")) or ""
    assert "error: /root/.local: Permission denied" in said
    assert "`su -` or `sudo -H`" in said


def test_full_disk_is_not_told_as_a_missing_right() -> None:
    said = explained(OSError(errno.ENOSPC, "No space left on device", "/tmp/a")) or ""
    assert "sudo" not in said


def _refused(*words: str) -> str:
    with pytest.raises(click.UsageError) as refused:
        odh.main(list(words), prog_name="odh", standalone_mode=False)
    return misused(refused.value)


@pytest.mark.parametrize("words", [("help", "run"), ("mpijob", "help", "create"), ("help",)])
def test_help_is_a_command_too(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(odh, list(words), prog_name="odh")
    path = " ".join(word for word in words if word != "help")
    assert shown.exit_code == 0 and shown.output.startswith(f"Usage: odh {path}".rstrip())


def test_version_is_a_command_too() -> None:
    assert CliRunner().invoke(odh, ["version"]).output.startswith("odh, version ")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("create", "create"), ("apply", "create"), ("submit", "create"), ("exec", "exec")],
)
def test_verbs_of_a_kind_are_named_where_the_kind_is_missing(typed: str, meant: str) -> None:
    said = f"error: no such command '{typed}'; did you mean `mpijob {meant}`?"
    assert _refused(typed).startswith(said)


def test_a_misspelt_option_is_answered_by_the_nearest_alone() -> None:
    assert _refused("run", "--slot", "2", "--", "true") == (
        "error: no such option '--slot'; did you mean `--slots`?\n\nhint: See `odh run --help`."
    )
    assert "did you mean" not in _refused("run", "--until", "1m", "--", "true")


@pytest.mark.parametrize("typed", ["-n", "-np", "--np", "--ntasks", "--nproc_per_node"])
def test_number_of_ranks_as_of_other_launchers_is_answered_by_ours(typed: str) -> None:
    assert "`-w 4 -s 2` starts 8" in _refused("run", typed, "4", "--", "true")


@pytest.mark.parametrize("number", ["two", "0", "1000000"])
def test_a_number_out_of_its_range_is_told_with_the_range(number: str) -> None:
    said = _refused("run", "-w", number, "--", "true")
    assert "'-w' / '--workers': must be a whole number from 1 to 256\n" in said
    assert "must be a whole number, 1 or more\n" in _refused("history", "--limit", "0")


def test_commands_are_suggested_in_their_short_form_where_there_is_one() -> None:
    assert tuple(SHORT) == context.SHORT
