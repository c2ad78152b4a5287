"""A job runs wherever its folder, its home, its Python path and its MPI lie (L-8)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.local.mpi.distributions import named
from tests.local.odh import run
from tests.local.ordinary import UID, OrdinaryUser

PROGRAM = """
from mpi4py import MPI
import beside, far
print(beside.WORD, far.WORD, MPI.COMM_WORLD.size)
"""
PLACES = ["below tmp", "with a space", "behind a link", "in shared memory"]

as_root = pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    base = "/dev/shm" if request.param == "in shared memory" else "/tmp"
    name = "odh a b " if request.param == "with a space" else "odh-"
    with tempfile.TemporaryDirectory(prefix=name, dir=base) as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "there").mkdir()
        if request.param == "behind a link":
            (folder / "link").symlink_to("there")
            yield folder / "link"
        else:
            yield folder / "there"


def furnished(place: Path, mpi: str) -> OrdinaryUser:
    """A home with its MPI, a working folder and a folder of modules, all of them here."""
    home = OrdinaryUser(place / "home")
    home.home.mkdir()
    home.install(mpi)
    for name in ("work", "lib"):
        (place / name).mkdir()
    (place / "work/train.py").write_text(PROGRAM)
    (place / "work/beside.py").write_text("WORD = 'near'\n")
    (place / "lib/far.py").write_text("WORD = 'far'\n")
    return home


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_job_sees_all_that_it_needs(place: Path, mpi: str) -> None:
    home = furnished(place, mpi)
    env = {
        **os.environ,
        "HOME": str(home.home),
        "XDG_DATA_HOME": str(home.home),
        "PYTHONPATH": str(place / "lib"),
    }
    words = ("run", "-w", "2", "--mpi", mpi, "--", "python", "train.py")
    ended = run(*words, cwd=place / "work", env=env)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["[0] near far 2", "[1] near far 2"]


@as_root
def test_ordinary_user_sees_the_same(place: Path) -> None:
    user = furnished(place, "openmpi")
    for path in (user.home, *user.home.rglob("*"), place / "work"):
        os.chown(path, UID, UID, follow_symlinks=False)
    env = {**user.env, "PYTHONPATH": f"{user.env['PYTHONPATH']}:{place / 'lib'}"}
    words = ("run", "-w", "2", "--", "python3", "train.py")
    ended = run(*words, cwd=place / "work", env=env, program=user.program)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["[0] near far 2", "[1] near far 2"]


def test_mount_point_that_is_missing_in_a_home_is_refused(place: Path) -> None:
    """It was made in the pod's own /tmp, and what was written there was lost with the pod."""
    home = place / "home"
    home.mkdir()
    default = named("openmpi")
    assert default is not None
    env = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(default.prefix.parents[2])}
    mount = f"{place}:{home}/data"
    ended = run("run", "-w", "1", "--mount", mount, "--", "true", cwd=place, env=env)
    assert ended.returncode != 0
    assert "this directory does not exist" in ended.stderr
    (home / "data").mkdir()
    ended = run("run", "-w", "1", "--mount", mount, "--", "ls", str(home / "data"), env=env)
    assert ended.returncode == 0, ended.stderr
    assert "home" in ended.stdout


def test_program_below_tmp_is_found_from_elsewhere(place: Path) -> None:
    script = place / "hello.sh"
    script.write_text("#!/bin/sh\necho found\n")
    script.chmod(0o755)
    ended = run("run", "-w", "1", "--", str(script), cwd=Path("/"))
    assert "found" in ended.stdout, ended.stderr
