"""Which ports of this machine nobody listens on. Danger: true of the moment of asking only."""

from __future__ import annotations

import socket


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now; "" is every address."""
    with socket.socket() as probe:
        # As servers do: a connection that ended lately keeps its port from nobody.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def unused_port() -> int:
    """A port of the kernel's choice."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
