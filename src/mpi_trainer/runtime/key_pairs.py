"""Key pairs of jobs: ECDSA P-521 or RSA 4096 for SSH, which FIPS allows and every OpenSSH reads
(AC-19), and CURVE (X25519 in Z85) for ZeroMQ, which Flux uses.

The private part exists only in the returned value: it is never printed (`repr` hides it) and never
passed on a command line.
"""

from __future__ import annotations

from typing import Final, Literal

KeyType = Literal["ecdsa-p521", "rsa-4096"]
ECDSA: Final = "ecdsa-p521"
RSA: Final = "rsa-4096"
_DIGITS: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)


class KeyPair:
    """A private key in OpenSSH's format and its public line (`ecdsa-sha2-nistp521 AAAA…`)."""

    __slots__ = ("private", "public")

    def __init__(self, private: bytes, public: str) -> None:
        self.private = private
        self.public = public

    def __repr__(self) -> str:
        return f"KeyPair({self.public[:32]}…)"


def generate_ssh(kind: KeyType = ECDSA) -> KeyPair:
    """RSA takes a processor for about a second, in which other threads run."""
    # Imported here because it is large and most processes that know keys never make one.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    if kind == RSA:
        key = rsa.generate_private_key(public_exponent=65537, key_size=4096)
    else:
        key = ec.generate_private_key(ec.SECP521R1())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return KeyPair(private, public.decode())


class CurvePair:
    """Both parts in Z85."""

    __slots__ = ("private", "public")

    def __init__(self, private: str, public: str) -> None:
        self.private = private
        self.public = public

    def __repr__(self) -> str:
        return f"CurvePair({self.public})"


def generate_curve() -> CurvePair:
    # Imported here because it is large and most processes that know keys never make one.
    from cryptography.hazmat.primitives.asymmetric import x25519

    key = x25519.X25519PrivateKey.generate()
    return CurvePair(z85(key.private_bytes_raw()), z85(key.public_key().public_bytes_raw()))


def z85(data: bytes) -> str:
    """ZeroMQ's base 85; `data` is a multiple of four bytes."""
    written: list[str] = []
    for start in range(0, len(data), 4):
        number = int.from_bytes(data[start : start + 4], "big")
        written += (_DIGITS[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return "".join(written)
