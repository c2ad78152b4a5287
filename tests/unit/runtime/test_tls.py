"""Certificates that somebody else keeps in a folder (`--cert-dir`) are read, and read again."""

from __future__ import annotations

import asyncio
import math
import ssl
from contextlib import suppress
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


APPROVED = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"} | {
    f"ECDHE-ECDSA-AES{size}" for size in ("128-GCM-SHA256", "256-GCM-SHA384")
}


def shaken(client: ssl.SSLContext) -> str:
    """The cipher that our server and this client agree upon, without a network."""
    shown = ServerCertificate()
    made = pair()
    shown.show(made.certificate, made.key)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(back, there)
    other = shown.context.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for side in (one, other):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    agreed = one.cipher()
    assert agreed is not None
    return str(agreed[0])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_a_connection_is_encrypted_with_is_approved_by_fips(version: ssl.TLSVersion) -> None:
    """OPS-1: whatever a usual client would rather have."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.minimum_version = client.maximum_version = version
    client.set_ciphers("CHACHA20:ALL")
    assert shaken(client) in APPROVED


@pytest.mark.parametrize(
    ("ciphers", "version"),
    [
        ("CHACHA20", ssl.TLSVersion.TLSv1_2),
        ("AES128-SHA", ssl.TLSVersion.TLSv1_2),
        ("ALL:@SECLEVEL=0", ssl.TLSVersion.TLSv1_1),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
def test_who_offers_nothing_that_is_approved_is_refused(
    ciphers: str, version: ssl.TLSVersion
) -> None:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.minimum_version = client.maximum_version = version
    client.set_ciphers(ciphers)
    with pytest.raises(ssl.SSLError):
        shaken(client)
