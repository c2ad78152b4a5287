"""This machine as a job's pods see it: the submitter's settings, the chosen MPI, an sshd."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Mapping
from typing import Final

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute.plan import Machine
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.mpi.distributions import Distribution
from mpi_trainer.local.pods import sshd
from mpi_trainer.local.pods.pod import MPI_FOLDER, PodMount

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+-]+")


def this_machine(
    settings: LocalSettings, distribution: Distribution, interface: str, claims: Mapping[str, str]
) -> Machine:
    server = sshd.find_sshd()
    if server is None:
        raise _missing("sshd", "openssh-server")
    if shutil.which("ssh") is None:
        raise _missing("ssh", "openssh-client")
    mpi = _mpi_mount(distribution)
    prefix = mpi.target if mpi else str(distribution.prefix)
    return Machine(
        env=settings.env,
        mpi_paths=(("PATH", f"{prefix}/bin"), ("LD_LIBRARY_PATH", f"{prefix}/lib")),
        cwd=settings.cwd,
        user=_user(),
        sshd=server,
        interface=interface,
        materials=settings.materials,
        claims=claims,
        mpi_env=distribution.env_at(prefix),
        mpi=mpi,
    )


def _mpi_mount(distribution: Distribution) -> PodMount | None:
    """The MPI at a plain path, where its own is none: Open MPI starts its daemons by a shell
    without quoting its own path, and lists of paths know no `:`."""
    prefix = distribution.prefix
    if _PLAIN.fullmatch(str(prefix)) and _PLAIN.fullmatch(str(prefix.resolve())):
        return None
    return PodMount(str(prefix), f"{MPI_FOLDER}/{prefix.name}", read_only=True)


def _missing(program: str, package: str) -> LocalError:
    return LocalError(
        f"there is no {program} on this machine, and MPI starts its workers over SSH",
        f"Install it: `apt-get install {package}` as root (elsewhere openssh-server and "
        "openssh-clients); without root run `make setup`, which unpacks an sshd for you alone.",
    )


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "user"
