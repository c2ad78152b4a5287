"""Runs one fault on one MPI: prepares the job's folder, starts it, hurts it, waits for its end."""

from __future__ import annotations

import atexit
import functools
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS, named
from tests.faults.scene import Outcome, scene, state_folder
from tests.faults.table import OPEN_MPI, Fault

PROGRAMS = Path(__file__).parent / "programs"
# The MPIs of a family share one binary interface, and not all of them bring a compiler.
COMPILERS = {**dict.fromkeys(OPEN_MPI, "openmpi4"), "": "mpich"}
# Time for odh to tell what happened and to take the pods down.
GRACE_SECONDS = 3.0
_FOLDERS = ExitStack()
atexit.register(_FOLDERS.close)


def injected(fault: Fault, mpi: str, bounds: Mapping[str, int] | None = None) -> Outcome:
    """How the job ended; the seconds count from the fault, or from the start where it is there."""
    with state_folder() as state:
        for program in PROGRAMS.glob("*.py"):
            shutil.copy(program, state)
        (state / "bin").mkdir()
        for place in ("rank", "bin/rank", "faulty"):
            if f"/state/{place}" in fault.command:
                made = compiled(COMPILERS.get(mpi, COMPILERS[""]), Path(place).name)
                shutil.copy(made, state / place)
        for name, text in fault.files.items():
            (state / name).write_text(text, encoding="latin-1")
            (state / name).chmod(0o755)
        limits = {"memory": fault.memory} if fault.memory else {}
        with scene(mpi, _launcher(fault), state, limits, bounds, fault.policy) as running:
            if fault.inject is not None:
                running.until_there("waiting" if fault.at_start else "running")
                fault.inject(running, mpi)
            elif fault.label.rank == 1:
                running.until_there("running")
            if fault.inject or fault.label.rank == 1:
                running.restart_clock()
            (state / "go").touch()
            return running.end(fault.seconds + GRACE_SECONDS)


def _launcher(fault: Fault) -> list[str]:
    """`mpirun` as a job's own command, behind a gate for what is hurt before it starts."""
    places = {d.name: str(d.prefix) for d in DISTRIBUTIONS}
    words = [word.format(python=sys.executable, **places) for word in fault.command]
    command = ["mpirun", *fault.options, "-n", str(fault.ranks), *words]
    if not fault.by_mpirun:
        command = words
    if not fault.at_start:
        return command
    wait = "touch /state/waiting; until [ -e /state/go ]; do sleep 0.05; done; exec "
    return ["sh", "-c", wait + shlex.join(command).replace("$", "$$")]


@functools.cache
def compiled(mpi: str, name: str = "rank") -> Path:
    """A C program, for all MPIs of a family."""
    distribution = named(mpi)
    assert distribution is not None
    folder = _FOLDERS.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", prefix="faults-"))
    program = Path(folder, name)
    # MPICH's compiler is a script that takes no path of its own with spaces.
    plain = Path(folder, "mpi")
    plain.symlink_to(distribution.prefix)
    compiler = f"{plain}/bin/mpicc"
    source = str(PROGRAMS / f"{name}.c")
    subprocess.run([compiler, "-o", str(program), source], check=True, timeout=60)
    return program
