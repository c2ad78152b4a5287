"""Makes a job's key pairs in a child process that starts early and ends at once.

The cryptography library is the largest thing a supervisor would ever load, and it is needed once:
the child loads it, while the supervisor makes ready, and takes its memory along. The private keys
cross a pipe between parent and child and nothing else.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import msgspec

from mpi_trainer.local.pods import syscalls
from mpi_trainer.runtime import key_pairs
from mpi_trainer.runtime.key_pairs import KeyPair


class KeyPairProcess:
    """Danger: forks, so make it in a process with one thread."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._reader, writer = os.pipe()
        parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            code = 1
            with suppress(BaseException):
                # It holds what the supervisor holds, its lock too, so it must not outlive it.
                syscalls.die_with_parent(signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(code)
                os.close(self._reader)
                pairs = [key_pairs.generate_ssh() for _ in range(count)]
                data = msgspec.msgpack.encode([(p.private, p.public) for p in pairs])
                while data:
                    data = data[os.write(writer, data) :]
                code = 0
            os._exit(code)
        os.close(writer)

    def pairs(self) -> list[KeyPair]:
        """The pairs, waiting for them if need be. To be called once."""
        with os.fdopen(self._reader, "rb") as pipe:
            data = pipe.read()
        os.waitpid(self._child, 0)
        made = msgspec.msgpack.decode(data, type=list[tuple[bytes, str]])
        return [KeyPair(private, public) for private, public in made]
