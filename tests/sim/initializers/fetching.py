"""Runs initializers: here, or as the process that they are in a pod."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from mpi_trainer.initializers import __main__ as program
from mpi_trainer.initializers.folder import MARKER, Marker


class Fetch(msgspec.Struct, frozen=True):
    status: int
    out: str
    err: str


class Runner:
    """`here` runs it within this process, whose constants a test may change."""

    def __init__(self, target: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.target = target
        self._capsys = capsys

    def here(self, uri: str, role: str = "dataset", **given: str) -> Fetch:
        self._capsys.readouterr()
        status = program.main([role], self._variables(uri, given), threading.Event())
        shown = self._capsys.readouterr()
        return Fetch(status, shown.out, shown.err)

    def process(self, uri: str, role: str = "dataset", **given: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "mpi_trainer.initializers", role],
            env={**os.environ, **self._variables(uri, given)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _variables(self, uri: str, given: Mapping[str, str]) -> dict[str, str]:
        return {"STORAGE_URI": uri, "TARGET_DIR": str(self.target), **given}

    @property
    def files(self) -> dict[str, bytes]:
        """What a training program finds; our own files are left out."""
        return {
            str(path.relative_to(self.target)): path.read_bytes()
            for path in sorted(self.target.rglob("*"))
            if path.is_file() and ".mpi-trainer-" not in str(path.relative_to(self.target))
        }

    @property
    def marker(self) -> Marker | None:
        path = self.target / MARKER
        return msgspec.json.decode(path.read_bytes(), type=Marker) if path.exists() else None
