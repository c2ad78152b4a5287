"""Certificates that somebody else keeps in a folder (`--cert-dir`) are read, and read again."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from mpi_trainer.runtime import tls
from mpi_trainer.runtime.certificates import Pair, first_chain
from mpi_trainer.runtime.tls import ServerCertificate, follow_folder
from mpi_trainer.webhook.metrics import watch_certificate
from tests.sim.waiting import until


class Watched(ServerCertificate):
    """Tells which certificates were taken."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[bytes] = []

    def show(self, certificate: bytes, key: bytes) -> bool:
        new = super().show(certificate, key)
        if new:
            self.taken.append(certificate)
        return new


def pair() -> Pair:
    return first_chain(("webhook.svc",), datetime.now(UTC)).server


def test_a_pair_is_shown_when_it_is_whole_and_renewed_while_we_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "EVERY_SECONDS", 0.02)
    one, other = pair(), pair()

    async def script() -> None:
        shown = Watched()
        following = asyncio.ensure_future(follow_folder(tmp_path, shown))
        (tmp_path / "tls.crt").write_bytes(one.certificate)
        (tmp_path / "tls.key").write_bytes(one.key)
        await until(lambda: shown.taken == [one.certificate])
        # Two files never change in one instant: the half-way pair is not taken.
        (tmp_path / "tls.crt").write_bytes(other.certificate)
        await asyncio.sleep(0.1)  # long enough to take it, were it taken
        assert shown.taken == [one.certificate]
        (tmp_path / "tls.key").write_bytes(other.key)
        await until(lambda: shown.taken == [one.certificate, other.certificate])
        following.cancel()

    asyncio.run(asyncio.wait_for(script(), 20))


def test_metrics_say_when_the_certificate_ends_that_is_shown_now() -> None:
    """OBS-1: what the alert on an old certificate reads."""
    registry, shown = CollectorRegistry(), ServerCertificate()
    watch_certificate(registry, shown)

    def ends() -> float:
        return registry.get_sample_value("webhook_certificate_expiration_timestamp_seconds") or 0.0

    assert math.isnan(ends()), "before there is one, no alert"
    one = pair()
    shown.show(one.certificate, one.key)
    assert ends() == one.parsed.not_valid_after_utc.timestamp()
    now = datetime.now(UTC) + timedelta(days=30)
    other = first_chain(("webhook.svc",), now).server
    shown.show(other.certificate, other.key)
    assert ends() == other.parsed.not_valid_after_utc.timestamp() > now.timestamp()


def test_a_certificate_whose_end_cannot_be_read_is_shown_all_the_same() -> None:
    """OpenSSL takes its own form of PEM, which x509 does not know."""
    shown, one = ServerCertificate(), pair()
    assert shown.show(one.certificate.replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE"), one.key)
    assert shown.ready
    assert math.isnan(shown.ends)
