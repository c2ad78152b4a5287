"""Certificates that somebody else keeps in a folder: cert-manager, or OpenShift's service-ca.

They are read again while we serve, because whoever keeps them also renews them.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from mpi_trainer.runtime.tls import Shown

EVERY_SECONDS = 5.0

log = logging.getLogger(__name__)


async def follow(folder: Path, shown: Shown) -> None:
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
