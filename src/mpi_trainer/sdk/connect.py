"""Where jobs go when nobody says where: this machine.

Every client and every job asks for a connection of its own, so that two logins in one notebook
never meet.
"""

from __future__ import annotations

from mpi_trainer.sdk.backend import Backend


def connect() -> Backend:
    """A new connection to where jobs run."""
    from mpi_trainer.sdk.local import LocalBackend

    return LocalBackend()
