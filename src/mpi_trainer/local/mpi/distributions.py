"""The MPI installations for local runs: pinned wheels, or Debian's own builds; one prefix each.

A prefix is complete or absent: it is built beside its place and renamed into it, under a lock, so
that two first uses at once end with one installation and an interrupted one leaves nothing.
Nothing is installed into the user's own Python environment.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from mpi_trainer.local.errors import CannotInstall
from mpi_trainer.local.mpi import debian
from mpi_trainer.local.paths import data_dir, open_unlinked

Progress = Callable[[float], None]


class Distribution(msgspec.Struct, frozen=True):
    """One build of an MPI implementation. `name` is what `--mpi` takes.

    `package` is Debian's, empty for wheels. `settings` are variables that the build needs to find
    itself outside its usual place; `{}` in them is its prefix.
    """

    name: str
    implementation: str
    title: str
    version: str
    has_compiler: bool
    works_on_loopback: bool = True
    package: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def prefix(self) -> Path:
        return data_dir() / "mpi" / f"{self.name}-{self.version}"

    @property
    def lock(self) -> Path:
        """The wheels with their hashes."""
        return Path(__file__).parent / f"{self.name}.txt"

    @property
    def installed(self) -> bool:
        return self.prefix.is_dir()

    def env_at(self, prefix: str) -> tuple[tuple[str, str], ...]:
        """Its variables where it is seen at this path."""
        return tuple((name, value.format(prefix)) for name, value in self.settings)


# The first of an implementation is what a job gets that names the implementation only.
DISTRIBUTIONS = (
    Distribution("openmpi", "OpenMPI", "Open MPI", "5.0.11", True, works_on_loopback=False),
    Distribution("openmpi4", "OpenMPI", "Open MPI", "4.1.8", True),
    Distribution("mpich", "MPICH", "MPICH", "5.0.2", True),
    Distribution("intel", "Intel", "Intel MPI", "2021.18.1", False),
    Distribution(
        "openmpi4-debian",
        "OpenMPI",
        "Debian's Open MPI",
        "4.1.4",
        False,
        package="openmpi-bin",
        settings=(("OPAL_PREFIX", "{}"), ("PMIX_MCA_pcompress_base_silence_warning", "1")),
    ),
    Distribution(
        "mpich4-debian",
        "MPICH",
        "Debian's MPICH",
        "4.0.2",
        False,
        package="mpich",
        settings=(("MPI4PY_MPIABI", "mpich"),),
    ),
)
# What is installed alike on every Linux.
WHEELS = tuple(d for d in DISTRIBUTIONS if not d.package)
# As pip, apt-get and dpkg-deb say it.
_DISK_FULL = ("No space left on device", "Disk quota exceeded")


def named(name: str) -> Distribution | None:
    return next((d for d in DISTRIBUTIONS if d.name == name), None)


def default_for(implementation: str) -> Distribution:
    return next(d for d in DISTRIBUTIONS if d.implementation == implementation)


def install(distribution: Distribution, progress: Progress) -> None:
    """Makes the prefix exist; returns at once where it does. `progress` gets the seconds."""
    if distribution.installed:
        return
    parent = distribution.prefix.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent / f".{distribution.name}.lock"):
            if not distribution.installed:
                _build(distribution, parent, progress)
    except CannotInstall as error:
        if not any(word in error.problem for word in _DISK_FULL):
            raise
        raise CannotInstall(
            error.problem,
            f"Free space in {parent} and {tempfile.gettempdir()}, or set XDG_DATA_HOME and TMPDIR "
            "to folders with more of it.",
        ) from error
    except OSError as error:
        raise CannotInstall(
            f"cannot write to {parent}: {error.strerror or error}",
            "Free space or give yourself the rights, or set XDG_DATA_HOME to another folder.",
        ) from error


def remove(distribution: Distribution) -> bool:
    """Takes an installation away; False where there was none."""
    if not distribution.installed:
        return False
    with _locked(distribution.prefix.parent / f".{distribution.name}.lock"):
        shutil.rmtree(distribution.prefix)
    return True


def _build(distribution: Distribution, parent: Path, progress: Progress) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{distribution.name}-", dir=parent))
    try:
        if distribution.package:
            package, version = distribution.package, distribution.version
            debian.unpack(package, version, scratch / "prefix", progress)
        else:
            _pip(distribution, scratch / "prefix", progress)
        (scratch / "prefix").rename(distribution.prefix)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _pip(distribution: Distribution, prefix: Path, progress: Progress) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--ignore-installed", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--prefix", str(prefix)]
    command += ["--no-warn-script-location", "--requirement", str(distribution.lock)]
    started = time.monotonic()
    with tempfile.TemporaryFile() as complaints:
        pip = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=complaints, stderr=complaints
        )
        try:
            while pip.poll() is None:
                progress(time.monotonic() - started)
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(timeout=0.5)
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
        if pip.returncode:
            complaints.seek(0)
            raise _explained(distribution, complaints.read().decode(errors="replace"))


def _explained(distribution: Distribution, text: str) -> CannotInstall:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip said nothing"]
    what = f"cannot install {distribution.title} {distribution.version}: {errors[-1]}"
    if "No module named pip" in text:
        return CannotInstall(what, f"Give it its pip: {sys.executable} -m ensurepip")
    return CannotInstall(
        what,
        "The wheels come from the package index that pip is set up for: check `pip config list` "
        "and the network, or choose another MPI with --mpi (`odh mpi list`).",
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = open_unlinked(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
