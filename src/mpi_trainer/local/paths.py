"""Where the local backend keeps things, by the XDG conventions of the current user.

Guarantee: a folder that is another user's is a LocalError (`jobs.private_files`).
"""

from __future__ import annotations

import os
from pathlib import Path

from mpi_trainer.local.jobs import private_files

PRODUCT = "mpi-trainer"


def data_dir() -> Path:
    """What can be fetched again: MPI installations, an unpacked sshd."""
    base, folder = _xdg("XDG_DATA_HOME", ".local/share")
    if os.geteuid() == 0:  # others may use what an administrator or an image's maker installed
        private_files.demand_own(folder / PRODUCT, base)
    return folder / PRODUCT


def claims_dir() -> Path:
    """Directories that stand for PersistentVolumeClaims; they outlive jobs, as claims do."""
    return data_dir() / "claims"


def jobs_dir() -> Path:
    """One directory a job: what it is, how it stands, what it said."""
    base, folder = _xdg("XDG_STATE_HOME", ".local/state")
    private_files.demand_own(folder / PRODUCT / "jobs", base)
    return folder / PRODUCT / "jobs"


def _xdg(variable: str, fallback: str) -> tuple[Path, Path]:
    """The folder that the user has chosen, or their home; and the one for things of this sort."""
    chosen = os.environ.get(variable, "")
    if chosen.startswith("/"):
        return Path(chosen), Path(chosen)
    return Path.home(), Path.home() / fallback
