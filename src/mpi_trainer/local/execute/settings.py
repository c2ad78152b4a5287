"""How a job runs on this machine, as the one who submits it sees the machine.

Taken once, when the job is submitted: a job that runs later, or again, finds the directory and the
Python environment of its creator, not of whoever happens to start it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.pods.environment import Materials

CLAIMS = "MPI_TRAINER_CLAIMS"
TAKEN = frozenset(
    {"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
)
TAKEN_PREFIXES = ("LC_", "PYTHON", "CONDA_", "XDG_CACHE", "XDG_DATA", "OMP_", "CUDA_")


class SubmittedTrainJob(msgspec.Struct, frozen=True):
    """A TrainJob and its runtime, as plain data, as they were when the job was submitted."""

    job: Mapping[str, Any]
    runtime: Mapping[str, Any]


class LocalSettings(msgspec.Struct, frozen=True):
    """`distribution` None lets the job's own implementation choose. `train` is the TrainJob that
    the job stands in for, where there is one. `code` is the folder of code that came with the job
    and goes with it."""

    cwd: str
    env: tuple[tuple[str, str], ...]
    distribution: str | None = None
    isolation: str = "auto"
    claims: Mapping[str, str] = {}
    materials: Materials = Materials()
    train: SubmittedTrainJob | None = None
    code: str = ""


def current_settings(claims: Mapping[str, str] | None = None) -> LocalSettings:
    """The caller's directory and the variables that programs need; `claims` are beside those that
    the caller's own variable gives."""
    env = tuple(python_environment(os.environ).items())
    given = given_claims(os.environ.get(CLAIMS, ""))
    return LocalSettings(cwd=_directory(), env=env, claims={**given, **(claims or {})})


def given_claims(text: str) -> dict[str, str]:
    """`NAME=DIRECTORY`, and more of them after a colon: what stands for PersistentVolumeClaims."""
    claims = {}
    for part in filter(None, text.split(":")):
        name, _, folder = part.partition("=")
        if not name or not folder:
            raise LocalError(
                f"{CLAIMS}: {part[:100]!r} is not NAME=DIRECTORY",
                f"Write for example {CLAIMS}=training-data=/srv/data:models=/srv/models.",
            )
        claims[name] = folder
    return claims


def _directory() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise LocalError(
            "the current directory was deleted, and the job would run in it",
            "Change to a directory that exists.",
        ) from error


def python_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that programs need, with its Python environment first on PATH.

    Nothing else is taken: a job states its variables, as it must on a cluster.
    """
    env = {k: v for k, v in caller.items() if k in TAKEN or k.startswith(TAKEN_PREFIXES)}
    home = caller.get("VIRTUAL_ENV") or caller.get("CONDA_PREFIX") or sys.prefix
    path = [p for p in caller.get("PATH", os.defpath).split(":") if p]
    first = f"{home}/bin"
    env["PATH"] = ":".join([first, *(p for p in path if p != first)])
    return env
