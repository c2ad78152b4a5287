"""The certificate that a server shows, changed while it serves.

Connections that are open keep what they began with; the next handshake gets the new one.
Private keys reach the TLS library through memory, never through a disk. Certificates that somebody
else keeps in a folder (cert-manager, OpenShift's service-ca) are read again while we serve.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import ssl
from pathlib import Path

from cryptography import x509

EVERY_SECONDS = 5.0
CIPHERS = "ECDHE+AESGCM"
"""of TLS 1.2, all approved by FIPS. Of TLS 1.3 Python cannot choose; the library's first one is AES
in GCM, and ours counts."""
log = logging.getLogger(__name__)


class ServerCertificate:
    """A server context whose certificate can be replaced.

    `ends` is when the one that is shown expires, in epoch seconds, and not a number before there
    is one."""

    def __init__(self) -> None:
        self.ends = math.nan
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_ciphers(CIPHERS)
        self.context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
        self._pair: tuple[bytes, bytes] | None = None

    @property
    def ready(self) -> bool:
        return self._pair is not None

    def show(self, certificate: bytes, key: bytes) -> bool:
        """Whether this is another one than before. ssl.SSLError where the two do not belong."""
        pair = (certificate, key)
        if pair == self._pair:
            return False
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
            file.flush()
            self.context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        self._pair = pair
        self.ends = _end(certificate)
        return True


def _end(certificate: bytes) -> float:
    """Not a number where x509 is stricter than TLS: such a certificate serves all the same."""
    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
    except ValueError:
        return math.nan


async def follow_folder(folder: Path, shown: ServerCertificate) -> None:
    """Until cancelled. Two files never change in one instant: a pair that does not fit waits."""
    said = ""
    while True:
        try:
            pair = (folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes()
            if shown.show(*pair):
                log.info("showing the certificate of %s", folder)
        except (OSError, ssl.SSLError) as error:
            if str(error) != said:
                log.warning("the certificate in %s cannot be used yet: %s", folder, error)
            said = str(error)
        await asyncio.sleep(EVERY_SECONDS if shown.ready else 0.5)
