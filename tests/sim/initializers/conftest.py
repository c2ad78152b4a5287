from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.initializers import fetch
from tests.dataserver import DataServer, serving
from tests.sim.initializers.fetching import Runner


@pytest.fixture
def runner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(tmp_path / "target", capsys)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DataServer]:
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as data:
        yield data


@pytest.fixture
def other(tmp_path: Path) -> Iterator[DataServer]:
    with serving(tmp_path / "served") as data:
        yield data


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PAUSES", (0.0, 0.0))
