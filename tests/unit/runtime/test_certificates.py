"""Certificates are renewed in steps that no handshake can notice; shown by real handshakes."""

from __future__ import annotations

import ssl
import tempfile
from datetime import UTC, datetime, timedelta

import pytest

from mpi_trainer.runtime import certificates
from mpi_trainer.runtime.certificates import Chain, first_chain, renewed_chain

NAMES = ("mpi-trainer-webhook.mpi-trainer.svc",)
START = datetime.now(UTC)


def handshake(chain: Chain, bundle: bytes, name: str = NAMES[0]) -> None:
    """TLS in memory; raises where a client that trusts `bundle` would not talk to this server."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(chain.server.certificate + chain.server.key)
        pem.flush()
        server.load_cert_chain(pem.name)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=bundle.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname=name)
    other = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = {one, other}
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.discard(side)
            except ssl.SSLWantReadError:
                continue


def test_the_first_chain_serves_its_name_and_no_other() -> None:
    chain = first_chain(NAMES, START)
    handshake(chain, chain.bundle)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(chain, chain.bundle, "other.svc")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(chain, first_chain(NAMES, START).bundle)


def test_nothing_changes_while_nothing_is_due() -> None:
    chain = first_chain(NAMES, START)
    assert renewed_chain(chain, NAMES, START + timedelta(days=50)) is chain


def test_server_certificate_is_renewed_under_the_same_authority() -> None:
    chain = first_chain(NAMES, START)
    later = renewed_chain(chain, NAMES, START + certificates.SERVER_LIFE * 3 / 4)
    assert later.server != chain.server
    assert later.bundle == chain.bundle


def test_new_authority_is_trusted_before_it_signs_and_the_old_one_until_nobody_serves_it() -> None:
    old = first_chain(NAMES, START - certificates.AUTHORITY_LIFE * 3 / 4)
    trusted = renewed_chain(old, NAMES, START)
    assert trusted.authority != old.authority
    assert trusted.server == old.server
    assert old.authority.certificate in trusted.bundle
    assert renewed_chain(trusted, NAMES, START + certificates.SPREAD / 2) is trusted
    signed = renewed_chain(trusted, NAMES, START + certificates.SPREAD * 2)
    handshake(signed, trusted.bundle)
    assert old.authority.certificate in signed.bundle
    assert renewed_chain(signed, NAMES, START + certificates.SPREAD * 3) is signed


def test_a_new_name_of_the_service_is_signed_at_once() -> None:
    chain = renewed_chain(first_chain(("old.svc",), START), NAMES, START)
    handshake(chain, chain.bundle)


def test_private_keys_are_not_shown() -> None:
    assert "PRIVATE" not in repr(first_chain(NAMES, START))
