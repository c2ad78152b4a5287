"""Certificates of our own: who signs, who is signed, and when to make new ones.

A `Chain` is everything that the replicas share, kept in one Secret. `renewed` is the next chain,
or the same one while nothing is due. Guarantee: a new authority is trusted (`bundle`) for
`SPREAD` before it signs what is served, and an old one for as long as anything that it signed may
be served, so that no handshake fails while replicas and API servers learn of a change one after
the other. Danger: the private keys are in the chain; `repr` does not show them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=3650)
SERVER_LIFE = timedelta(days=90)
SPREAD = timedelta(minutes=2)
_BACKDATED = timedelta(minutes=5)


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(…)"

    @property
    def parsed(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate)

    def due(self, now: datetime) -> bool:
        """Whether two thirds of its life are over."""
        made, ends = self.parsed.not_valid_before_utc, self.parsed.not_valid_after_utc
        return now >= made + (ends - made) * 2 / 3


class Chain(msgspec.Struct, frozen=True):
    """`retired` are authorities that still may have signed what somebody serves."""

    authority: Pair
    server: Pair
    retired: tuple[bytes, ...] = ()

    def check(self) -> None:
        """ValueError where a certificate cannot be read."""
        for pem in (self.authority.certificate, self.server.certificate, *self.retired):
            x509.load_pem_x509_certificate(pem)

    @property
    def bundle(self) -> bytes:
        """What the API server has to trust."""
        return b"".join((self.authority.certificate, *self.retired))


def first_chain(names: tuple[str, ...], now: datetime) -> Chain:
    authority = _authority(now)
    return Chain(authority, _server(names, authority, now))


def renewed_chain(chain: Chain, names: tuple[str, ...], now: datetime) -> Chain:
    """The chain that should be in use now; the same value while nothing is due."""
    authority, server = chain.authority, chain.server
    if authority.due(now):
        return Chain(_authority(now), server, _valid((authority.certificate, *chain.retired), now))
    if not set(names) <= _names(server):
        return _signed(chain, names, now)
    known_since = authority.parsed.not_valid_before_utc + _BACKDATED
    stale = server.due(now) or not _signs(authority, server)
    return _signed(chain, names, now) if stale and now >= known_since + SPREAD else chain


def _signed(chain: Chain, names: tuple[str, ...], now: datetime) -> Chain:
    server = _server(names, chain.authority, now)
    return Chain(chain.authority, server, _valid(chain.retired, now))


def _valid(certificates: tuple[bytes, ...], now: datetime) -> tuple[bytes, ...]:
    """Without those that have run out: nobody can serve what they signed."""
    return tuple(
        pem for pem in certificates if x509.load_pem_x509_certificate(pem).not_valid_after_utc > now
    )


def _signs(authority: Pair, server: Pair) -> bool:
    try:
        server.parsed.verify_directly_issued_by(authority.parsed)
    except Exception:  # the library raises several kinds; each means that it did not sign
        return False
    return True


def _names(server: Pair) -> set[str]:
    found = server.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return set(found.value.get_values_for_type(x509.DNSName))


def _authority(now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP384R1())
    name = _called("mpi-trainer authority")
    builder = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA384()), key)


def _server(names: tuple[str, ...], authority: Pair, now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    issuer = authority.parsed
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder(_called(names[0][:64]), issuer.subject, key.public_key(), now, SERVER_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(alternatives, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
    )
    return _pair(builder.sign(signer, hashes.SHA384()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + life)
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _called(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
