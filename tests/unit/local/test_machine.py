"""What a job's pods take over from the caller's environment."""

from __future__ import annotations

import sys

import pytest

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute.settings import current_settings, given_claims, python_environment


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_callers_python_is_first_on_path(variable: str) -> None:
    env = python_environment({variable: "/envs/mine", "PATH": "/usr/bin:/bin"})
    assert env["PATH"] == "/envs/mine/bin:/usr/bin:/bin"


def test_a_virtual_environment_goes_before_the_conda_one_that_it_was_made_in() -> None:
    caller = {"VIRTUAL_ENV": "/venv", "CONDA_PREFIX": "/conda", "PATH": "/conda/bin:/bin"}
    assert python_environment(caller)["PATH"] == "/venv/bin:/conda/bin:/bin"


def test_without_either_it_is_the_python_that_runs_this() -> None:
    assert python_environment({"PATH": "/bin"})["PATH"] == f"{sys.prefix}/bin:/bin"


def test_no_directory_is_on_path_twice_or_empty() -> None:
    caller = {"VIRTUAL_ENV": "/venv", "PATH": ":/usr/bin::/venv/bin:"}
    assert python_environment(caller)["PATH"] == "/venv/bin:/usr/bin"


def test_a_caller_without_path_gets_one() -> None:
    assert python_environment({"VIRTUAL_ENV": "/venv"})["PATH"].startswith("/venv/bin:/")


def test_only_what_programs_need_is_taken() -> None:
    """A token in the caller's shell does not reach the job unasked."""
    needed = {
        "HOME": "/home/me",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "PYTHONPATH": "/src",
        "LD_LIBRARY_PATH": "/opt/lib",
        "CUDA_VISIBLE_DEVICES": "0",
        "OMP_NUM_THREADS": "4",
        "VIRTUAL_ENV": "/venv",
    }
    other = {
        "AWS_SECRET_ACCESS_KEY": "x",
        "OMPI_MCA_btl": "self",
        "PMI_RANK": "0",
        "SSH_AUTH_SOCK": "/s",
        "TMPDIR": "/scratch",
        "PWD": "/",
        "LD_PRELOAD": "x.so",
    }
    env = python_environment({**needed, **other, "PATH": "/bin"})
    assert env.pop("PATH")
    assert env == needed


def test_directories_for_claims_are_read_from_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI_TRAINER_CLAIMS", "data=/a:models=/m")
    assert current_settings({"data": "/b"}).claims == {"data": "/b", "models": "/m"}
    assert given_claims("data=/srv/a=b:models=/m:") == {"data": "/srv/a=b", "models": "/m"}
    assert given_claims("") == {}
    with pytest.raises(LocalError, match="'data' is not NAME=DIRECTORY"):
        given_claims("data")
