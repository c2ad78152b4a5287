"""Where the local backend keeps things, by the XDG conventions of the current user.

Guarantee: what another user planted is neither used nor followed. `sudo` may keep HOME, and XDG
variables may name anybody's folder; a program of root that writes, or runs what it finds, in a
folder of somebody else works for that somebody.
"""

from __future__ import annotations

import os
from pathlib import Path

from mpi_trainer.local.errors import LocalError

PRODUCT = "mpi-trainer"


def data_dir() -> Path:
    """What can be fetched again: MPI installations, an unpacked sshd."""
    base, folder = _xdg("XDG_DATA_HOME", ".local/share")
    if os.geteuid() == 0:  # others may use what an administrator or an image's maker installed
        demand_own(folder / PRODUCT, base)
    return folder / PRODUCT


def claims_dir() -> Path:
    """Directories that stand for PersistentVolumeClaims; they outlive jobs, as claims do."""
    return data_dir() / "claims"


def jobs_dir() -> Path:
    """One directory a job: what it is, how it stands, what it said."""
    base, folder = _xdg("XDG_STATE_HOME", ".local/state")
    demand_own(folder / PRODUCT / "jobs", base)
    return folder / PRODUCT / "jobs"


def code_dir() -> Path:
    """A folder for each job that came with its code."""
    return jobs_dir().with_name("code")


def _xdg(variable: str, fallback: str) -> tuple[Path, Path]:
    """The folder that the user has chosen, or their home; and the one for things of this sort."""
    chosen = os.environ.get(variable, "")
    if chosen.startswith("/"):
        return Path(chosen), Path(chosen)
    return Path.home(), Path.home() / fallback


def demand_own(folder: Path, base: Path) -> None:
    """LocalError where `folder` is not the caller's; for root also where any folder above it, up
    to `base`, is another's, who could exchange what is below. What does not exist is nobody's."""
    chain = [folder, *(parent for parent in folder.parents if parent.is_relative_to(base))]
    for place in chain if os.geteuid() == 0 else chain[:1]:
        owner = _owner(place)
        if owner not in (None, os.geteuid()) and owner != _owner_of_new_files(place):
            raise LocalError(
                f"{place} belongs to user {owner}, and this is user {os.geteuid()}",
                "Run as that user, or use a folder of your own: `sudo -H`, or set HOME, "
                "XDG_STATE_HOME and XDG_DATA_HOME.",
            )


def open_unlinked(path: Path | str, flags: int) -> int:
    """A descriptor of the file itself, never of what a symbolic link there points to; a new file is
    its owner's alone."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _owner(place: Path) -> int | None:
    try:
        return place.stat().st_uid
    except (FileNotFoundError, NotADirectoryError):
        return None


def _owner_of_new_files(place: Path) -> int | None:
    """A file server may give all files to one user; then the folder's owner is us."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=place) as file:
            return os.fstat(file.fileno()).st_uid
    except OSError:
        return None
