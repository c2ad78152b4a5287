"""One at a time: a file lock that the kernel releases when its holder dies.

The holder's pid and purpose are written into the file for the message to whoever waits.
Danger: the lock follows the open file, so it must never be inherited by a started process
(Python opens files close-on-exec; keep it that way).
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.cluster.errors import ClusterError


@contextmanager
def locked(path: Path, purpose: str, wait_seconds: float = 3600.0) -> Iterator[None]:
    """Hold the lock at `path`; wait for its holder, say for whom, and give up in the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        _acquire(file.fileno(), path, time.monotonic() + wait_seconds)
        file.truncate(0)
        file.write(f"{os.getpid()} ({purpose})")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = path.read_text().strip() or "another process"
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{path.name}: still held by {holder}", "Wait for it to end, or end it yourself."
            )
        if not told:
            print(f"waiting for {holder}, which holds {path.name}", file=sys.stderr, flush=True)
            told = True
        time.sleep(0.1)
