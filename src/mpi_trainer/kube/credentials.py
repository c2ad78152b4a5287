"""Who we are to the API server, as something that may change while we run.

A source gives the current `Credential` without waiting where it can (`ready`) and otherwise makes
one (`fetch`, which may run a program and blocks). After a 401 `refused` says whether another try
may help. No source and no credential shows its secret in `repr`.
"""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Final, Protocol

from mpi_trainer.kube.errors import ConfigError

FRESH: Final = 10.0


class Credential:
    """What goes with a request: a header, a client certificate, both or none."""

    __slots__ = ("authorization", "certificate", "key")

    def __init__(self, authorization: str = "", certificate: bytes = b"", key: bytes = b"") -> None:
        self.authorization = authorization
        self.certificate = certificate
        self.key = key

    def __repr__(self) -> str:
        return "Credential(…)"


class Credentials(Protocol):
    """A source of credentials. Methods may be called from any thread."""

    def ready(self) -> Credential | None:
        """The credential to use now, or None if `fetch` must make it."""

    def fetch(self) -> Credential:
        """Make a credential; may block, raises ConfigError."""

    def refused(self) -> bool:
        """The server does not accept it any more; whether another one may be had."""


class Fixed:
    """A credential that never changes; without one, nobody in particular."""

    __slots__ = ("_credential",)

    def __init__(self, authorization: str = "") -> None:
        self._credential = Credential(authorization)

    def ready(self) -> Credential | None:
        return self._credential

    def fetch(self) -> Credential:
        return self._credential

    def refused(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Fixed(…)" if self._credential.authorization else "Fixed()"


class TokenFile:
    """A token in a file that somebody else renews; `last` is used until the file can be read."""

    __slots__ = ("_credential", "_path", "_read_at")

    def __init__(self, path: Path, last: str = "") -> None:
        self._path = path
        self._credential = Credential(bearer(last)) if last else None
        self._read_at = -FRESH

    def ready(self) -> Credential | None:
        now = time.monotonic()
        if self._credential is None or now - self._read_at >= FRESH:
            self._read_at = now
            self._credential = self._read() or self._credential
        return self._credential

    def fetch(self) -> Credential:
        credential = self._read()
        if credential is None:
            raise ConfigError(f"{self._path}: no token can be read from this file")
        return credential

    def refused(self) -> bool:
        """Whether the file holds another token than the one that was refused."""
        before, self._read_at = self._credential, time.monotonic()
        self._credential = self._read() or before
        if before is None or self._credential is None:
            return self._credential is not None
        return self._credential.authorization != before.authorization

    def _read(self) -> Credential | None:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return Credential(bearer(token)) if token else None

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


def bearer(token: str) -> str:
    """The header for a token."""
    if not token.isascii() or any(c.isspace() or not c.isprintable() for c in token):
        raise ConfigError("the token holds characters that no token has; copy it again")
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header for a name and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
