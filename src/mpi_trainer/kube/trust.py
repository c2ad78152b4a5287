"""TLS towards the API server: whom we believe, and the certificate that we show.

Servers are always verified unless the configuration says `insecure`. Files are looked at again
while we run, so a renewed certificate or authority is used without a restart. A private key that
came inline never touches a disk where the system can avoid it, and is never shown in `repr`.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from mpi_trainer.kube.credentials import Credential
from mpi_trainer.kube.errors import ConfigError

_CHECK_SECONDS: Final = 10.0


class Trust(msgspec.Struct, frozen=True):
    """What a configuration says about TLS; data wins over a file for the same thing."""

    authority: bytes = b""
    authority_file: str = ""
    certificate: bytes = b""
    certificate_file: str = ""
    key: bytes = b""
    key_file: str = ""
    server_name: str = ""
    insecure: bool = False

    def __repr__(self) -> str:
        return f"Trust(authority_file={self.authority_file!r}, insecure={self.insecure})"


class Contexts:
    """The SSL context for now: a new one whenever a file or the credential has changed."""

    def __init__(self, trust: Trust, clock: Callable[[], float] = time.monotonic) -> None:
        self._trust = trust
        self._clock = clock
        self._checked_at = -_CHECK_SECONDS
        self._made_of: tuple[object, ...] = ()
        self._context: ssl.SSLContext | None = None

    def current(self, credential: Credential) -> ssl.SSLContext:
        """A context for a new connection; the same object as long as nothing changed."""
        now = self._clock()
        shown = (credential.certificate, credential.key)
        if self._context and now - self._checked_at < _CHECK_SECONDS and self._made_of[0] == shown:
            return self._context
        self._checked_at = now
        made_of = (shown, *self._files())
        if not self._context or made_of != self._made_of:
            self._context, self._made_of = self._make(credential), made_of
        return self._context

    def _make(self, credential: Credential) -> ssl.SSLContext:
        try:
            return context(self._trust, credential)
        except ConfigError:
            # Two files are never replaced in one instant; they match at the next check.
            if self._context:
                return self._context
            raise

    def _files(self) -> Iterator[tuple[int, int, int] | None]:
        trust = self._trust
        for path in (trust.authority_file, trust.certificate_file, trust.key_file):
            with suppress(OSError):
                seen = Path(path).stat() if path else None
                yield (seen.st_mtime_ns, seen.st_size, seen.st_ino) if seen else None


def context(trust: Trust, credential: Credential) -> ssl.SSLContext:
    """An SSL context, or ConfigError in words that name the field."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    # As the API server's own clients do: an intermediate authority may be the anchor, and old
    # clusters' certificates without key identifiers are believed (kubernetes-client/python#2394).
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    else:
        _believe(made, trust)
    _show(made, trust, credential)
    return made


def _believe(made: ssl.SSLContext, trust: Trust) -> None:
    authority = trust.authority or _bytes(trust.authority_file, "certificate-authority")
    if not authority:
        made.load_default_certs()
        return
    try:
        made.load_verify_locations(cadata=authority.decode())
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"certificate-authority: no PEM certificates in it ({error})") from None


def _show(made: ssl.SSLContext, trust: Trust, credential: Credential) -> None:
    certificate, key = credential.certificate, credential.key
    if not certificate:
        certificate = trust.certificate or _bytes(trust.certificate_file, "client-certificate")
        key = trust.key or _bytes(trust.key_file, "client-key")
    if not certificate:
        return
    if not key:
        raise ConfigError("client-certificate: there is no client-key for it; add the key")
    try:
        with _as_file(certificate.rstrip() + b"\n" + key) as path:
            made.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"client-certificate, client-key: not a pair in PEM ({error})") from None


def _no_password() -> str:
    raise ConfigError("client-key: it is encrypted, and we do not ask; give one without password")


def _bytes(path: str, field: str) -> bytes:
    try:
        return Path(path).read_bytes() if path else b""
    except OSError as error:
        raise ConfigError(f"{field}: {path}: {error.strerror}") from None


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """The ssl module reads keys from files only; this one is in memory where that exists."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        import tempfile

        # Created by the library with mode 0600, gone at the end of the block.
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name
