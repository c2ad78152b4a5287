"""The machine's sshd: where it is, and how it says that it is up.

Everything else about SSH is the agent's, in `layout/agent`, as in every pod of a cluster.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from mpi_trainer.layout.agent import paths
from mpi_trainer.local.paths import data_dir

PORT = paths.PORT
_CHATTER = ("Accepted ", "Connection ", "Disconnected ", "Received ", "Server ", "Starting ")
LISTENING = b"Server listening on "


def find_sshd() -> str | None:
    """The system's sshd, or the one that `make setup` unpacked for an ordinary user."""
    unpacked = data_dir() / "openssh" / "usr" / "sbin" / "sshd"
    candidates = (shutil.which("sshd"), "/usr/sbin/sshd", "/usr/lib/ssh/sshd", str(unpacked))
    return next((c for c in candidates if c and Path(c).is_file()), None)


def is_chatter(line: str) -> bool:
    """Whether this is what a healthy sshd says of its connections."""
    return line.startswith(_CHATTER)
