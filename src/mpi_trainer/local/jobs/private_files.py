"""Folders and files of the caller alone: what another user planted is neither used nor followed.

`sudo` may keep HOME, and XDG variables may name anybody's folder. A program of root that writes, or
runs what it finds, in a folder of somebody else works for that somebody.
"""

from __future__ import annotations

import os
from pathlib import Path

from mpi_trainer.local.errors import LocalError


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
