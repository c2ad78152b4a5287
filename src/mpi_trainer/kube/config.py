"""Which API server, and as whom: one frozen value, from a kubeconfig or from inside a pod.

`repr` shows the server and where the configuration came from, never a secret.
"""

from __future__ import annotations

import msgspec

from mpi_trainer.kube.credentials import Credentials, Fixed
from mpi_trainer.kube.trust import Trust

Headers = tuple[tuple[str, str], ...]


class Config(msgspec.Struct, frozen=True):
    """A server and an account. `impersonation` goes as headers with every request."""

    server: str
    namespace: str = "default"
    trust: Trust = Trust()
    credentials: Credentials = Fixed()
    impersonation: Headers = ()
    proxy: str = ""
    compress: bool = True
    source: str = ""

    def __repr__(self) -> str:
        return f"Config({self.server!r}, namespace={self.namespace!r}, source={self.source!r})"
