"""MPI builds of Debian, unpacked beside the system: no root, and nothing of the system changes.

apt fetches what the system's own archive offers and checks it against the archive's signatures;
what the machine already has is not fetched twice. Guarantee: only the version that was asked for
is unpacked. Danger: the libraries of the machine that the build leans on can be removed later.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from mpi_trainer.local.errors import CannotInstall

Progress = Callable[[float], None]

_WANTED = re.compile(r"^Inst (\S+)", re.MULTILINE)
_OLD_MPICH = "libmpich.so.12"


def unpack(package: str, version: str, prefix: Path, progress: Progress) -> None:
    """Makes `prefix` hold the package with all it needs: programs in bin, libraries in lib."""
    _demand_version(package, version)
    fetched, root = prefix.parent / "fetched", prefix.parent / "root"
    fetched.mkdir()
    needed = _WANTED.findall(_said("install", "--simulate", "--no-install-recommends", package))
    # `_apt`, to which root's apt would change, may not write here.
    _follow(
        ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *{package, *needed}],
        fetched,
        progress,
    )
    for archive in sorted(fetched.iterdir()):
        _follow(["dpkg-deb", "-x", str(archive), str(root)], fetched, progress)
    if (root / "lib").is_dir():
        shutil.copytree(root / "lib", root / "usr/lib", symlinks=True, dirs_exist_ok=True)
    (root / "usr").rename(prefix)
    _link_libraries(prefix / "lib")
    _link_programs(prefix / "bin")


def _demand_version(package: str, version: str) -> None:
    if shutil.which("apt-get") is None:
        raise CannotInstall(
            f"cannot install Debian's {package}: there is no apt-get on this machine",
            "Choose another MPI with --mpi (`odh mpi list`).",
        )
    offered = re.search(r"Candidate: (\S+)", _said("policy", package, program="apt-cache"))
    if offered is None or not re.match(rf"{re.escape(version)}\b", offered[1]):
        there = offered[1] if offered else "none"
        raise CannotInstall(
            f"cannot install Debian's {package} {version}: this system's archive has {there}",
            "Run `apt-get update` as root if the lists are missing, or choose another MPI "
            "with --mpi (`odh mpi list`).",
        )


def _said(*words: str, program: str = "apt-get") -> str:
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, env=_plain(), check=False
    )
    if done.returncode:
        raise _refused(program, done.stderr)
    return done.stdout


def _follow(command: list[str], folder: Path, progress: Progress) -> None:
    started = time.monotonic()
    running = subprocess.Popen(
        command,
        cwd=folder,
        env=_plain(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        while running.poll() is None:
            progress(time.monotonic() - started)
            with suppress(subprocess.TimeoutExpired):
                running.wait(timeout=0.5)
    finally:
        if running.poll() is None:
            running.kill()
        _, complaints = running.communicate()
    if running.returncode:
        raise _refused(command[0], complaints.decode(errors="replace"))


def _plain() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def _refused(program: str, complaints: str) -> CannotInstall:
    lines = [line for line in complaints.splitlines() if line.strip()] or ["it said nothing"]
    return CannotInstall(
        f"{program} failed: {lines[-1]}",
        "Check the network and `apt-cache policy`, or choose another MPI with --mpi.",
    )


def _link_libraries(lib: Path) -> None:
    """Every library in one folder; Debian's MPICH also under the name that programs ask for."""
    for found in sorted((*lib.glob("*/*.so.*"), *lib.glob("*/lib*/*.so.*"), *_pmix(lib))):
        place = lib / found.name
        if not place.is_symlink():
            place.symlink_to(found.relative_to(lib))
    if (lib / _OLD_MPICH).exists():
        (lib / "libmpi.so.12").symlink_to(_OLD_MPICH)
    for psm in lib.glob("libpsm_infinipath.so.1.*"):
        (lib / "libpsm_infinipath.so.1").symlink_to(psm.name)


def _pmix(lib: Path) -> Iterable[Path]:
    return lib.glob("*/pmix2/lib/*.so.*")


def _link_programs(programs: Path) -> None:
    """`mpirun.openmpi` as `mpirun`: the system would choose between builds, a prefix has one."""
    for found in sorted((*programs.glob("*.openmpi"), *programs.glob("*.mpich"))):
        place = programs / found.stem
        if not place.exists():
            place.symlink_to(found.name)
