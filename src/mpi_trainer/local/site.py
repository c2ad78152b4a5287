"""This machine as a job's pods see it: the caller's Python, the chosen MPI, the directory.

Only variables that make programs run are taken from the caller; anything else has to be asked
for, as it must be on a cluster.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path

from mpi_trainer.local import sshd
from mpi_trainer.local.distributions import Distribution
from mpi_trainer.local.environment import Materials
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.plan import Site

TAKEN = frozenset(
    {"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
)
TAKEN_PREFIXES = ("LC_", "PYTHON", "CONDA_", "XDG_CACHE", "XDG_DATA", "OMP_", "CUDA_")


def site(
    distribution: Distribution, interface: str, materials: Materials, claims: Mapping[str, str]
) -> Site:
    server = sshd.find_sshd()
    if server is None:
        raise LocalError(
            "there is no sshd on this machine, and MPI starts its workers over SSH",
            "Install it: `apt-get install openssh-server` (or `dnf install openssh-server`) as "
            "root; without root run `make setup`, which unpacks one for you alone.",
        )
    prefix = distribution.prefix
    return Site(
        env=tuple(python_environment(os.environ).items()),
        mpi_paths=(("PATH", f"{prefix}/bin"), ("LD_LIBRARY_PATH", f"{prefix}/lib")),
        cwd=str(Path.cwd()),
        user=_user(),
        sshd=server,
        interface=interface,
        materials=materials,
        claims=claims,
    )


def python_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables that programs need, with its Python environment first on PATH."""
    env = {k: v for k, v in caller.items() if k in TAKEN or k.startswith(TAKEN_PREFIXES)}
    home = caller.get("VIRTUAL_ENV") or caller.get("CONDA_PREFIX") or sys.prefix
    path = [p for p in caller.get("PATH", os.defpath).split(":") if p]
    first = f"{home}/bin"
    env["PATH"] = ":".join([first, *(p for p in path if p != first)])
    return env


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "user"
