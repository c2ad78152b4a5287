"""Where the local backend keeps things, by the XDG conventions of the current user."""

from __future__ import annotations

import os
from pathlib import Path

PRODUCT = "mpi-trainer"


def data_dir() -> Path:
    """What can be fetched again: MPI installations, an unpacked sshd."""
    return _xdg("XDG_DATA_HOME", ".local/share") / PRODUCT


def claims_dir() -> Path:
    """Directories that stand for PersistentVolumeClaims; they outlive jobs, as claims do."""
    return data_dir() / "claims"


def jobs_dir() -> Path:
    """One directory a job: what it is, how it stands, what it said."""
    return _xdg("XDG_STATE_HOME", ".local/state") / PRODUCT / "jobs"


def _xdg(variable: str, fallback: str) -> Path:
    chosen = os.environ.get(variable, "")
    return Path(chosen) if chosen.startswith("/") else Path.home() / fallback
