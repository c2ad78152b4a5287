"""Where things live: built programs, images and running clusters, all outside the repository.

Everything is under one cache directory and safe to delete while no cluster runs. Names of
built things end in a content hash, so two checkouts share what is equal and never mix what is not.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

RUN = Path("/run/mpi-trainer")
"""sockets of nodes: the state directory's path may be too long for a unix socket"""


def cache_root() -> Path:
    """The cache directory: `$MPI_TRAINER_CACHE`, or the user's cache directory."""
    own = os.environ.get("MPI_TRAINER_CACHE")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "mpi-trainer"


def clusters_root() -> Path:
    """The directory of all clusters' state."""
    return cache_root() / "clusters"


def content_hash(*parts: object) -> str:
    """A short hash that changes with any part; parts are values or bytes."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else msgspec.json.encode(part)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]
