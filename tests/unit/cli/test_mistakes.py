"""What is said of errors that the machine causes (S-9), and of command lines that are wrong."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mpi_trainer.cli import context
from mpi_trainer.cli.app import SHORT, odh
from mpi_trainer.cli.output.errors import explained, misused
from mpi_trainer.local.execute.settings import current_settings
from mpi_trainer.local.jobs import store
from mpi_trainer.local.jobs.jobdir import JobDir
from mpi_trainer.sdk.job.new import NewJob


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


def test_a_file_where_a_directory_must_be_is_no_fault_of_odh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-5: XDG_STATE_HOME=<a file>."""
    (tmp_path / "state").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for words, path in ((["mpijob", "list"], "jobs/default"), (["history"], "runs.jsonl")):
        with pytest.raises(OSError, match="Not a directory") as failed:
            odh.main(words, prog_name="odh", standalone_mode=False)
        said = explained(failed.value) or ""
        assert said.startswith(f"error: {tmp_path}/state/mpi-trainer/{path}: Not a directory")
        assert "XDG_STATE_HOME" in said


def test_a_full_store_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L-5: a write says neither which file nor which disk."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(JobDir, "write_job", full)
    with pytest.raises(OSError, match="No space left") as failed:
        store.submit(NewJob("train", ("true",)).mpijob(), current_settings())
    said = explained(failed.value) or ""
    assert said.startswith(f"error: {tmp_path}/mpi-trainer/jobs/default: No space left on device")
    assert "XDG_STATE_HOME" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("create a b -w 1 -- true", "a job has one name, and before `--` there are 2 words: a, b"),
        ("create a b c -- a b c", "before `--` there are 3 words: a, b, c"),
        (
            "create a --claim data=/tmp -- true",
            "--claim data: the job mounts no PersistentVolumeClaim data; it mounts none",
        ),
        (
            "create a --claim dta=/tmp --pvc data:/data -- true",
            "--claim dta: the job mounts no PersistentVolumeClaim dta; did you mean `data`?",
        ),
    ],
)
def test_wrong_words_of_create_are_named(
    monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    assert said in _refused("mpijob", *words.split())


def test_a_variable_has_a_name_without_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    assert "'BAD NAME' is not the name of a variable" in _refused(
        "run", "-e", "BAD NAME=3", "--", "true"
    )


def test_all_that_follows_the_dashes_is_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")

    def made(*words: str) -> tuple[str, list[str]]:
        ended = CliRunner().invoke(odh, ["mpijob", "create", "--dry-run", "-o", "json", *words])
        job = json.loads(ended.stdout)
        pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        return job["metadata"]["name"], pod["containers"][0]["command"][3:]

    assert made("-w", "1", "--", "python", "-c", "1") == ("job", ["python", "-c", "1"])
    assert made("train", "-w", "1", "--", "python") == ("train", ["python"])
    assert made("train", "--", "echo", "--", "x") == ("train", ["echo", "--", "x"])
    assert made("train", "python") == ("train", ["python"])


def test_a_number_as_namespace_is_answered_with_how_ranks_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """L-5: `-n 4` is mpirun's number of ranks."""
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    words = ["mpijob", "create", "train", "-n", "4", "--dry-run", "--", "true"]
    said = CliRunner().invoke(odh, words).stderr
    assert "warning: -n is the namespace, here `4`; the number of ranks is workers" in said
