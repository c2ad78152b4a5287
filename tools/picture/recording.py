"""A command run in a terminal of its own, and all that it wrote there.

The terminal is real (a pseudo-terminal of a given width), so programs show the colours that their
users see. Danger: nobody types into it: a command that asks something waits until the time is up.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

ROWS: Final = 50


class Recording(msgspec.Struct, frozen=True):
    output: str
    code: int


def record(
    command: Sequence[str], folder: Path, env: Mapping[str, str], columns: int, limit: float
) -> Recording:
    """Runs the command to its end; raises TimeoutError after `limit` seconds."""
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(env),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        finally:
            os.close(slave)
        try:
            output = _everything(master, limit)
            return Recording(output, process.wait(timeout=limit))
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    finally:
        os.close(master)


def _everything(master: int, limit: float) -> str:
    decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
    parts: list[str] = []
    deadline = time.monotonic() + limit
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([master], [], [], left)[0]:
            break
        try:
            data = os.read(master, 65536)
        except OSError:  # EIO: the last process that held the terminal is gone
            data = b""
        if not data:
            return "".join(parts) + decode(b"", final=True)
        parts.append(decode(data))
    raise TimeoutError(f"the command still runs after {limit:.0f} s")
