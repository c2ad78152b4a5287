"""SSH key pairs: ECDSA P-521, as FIPS allows and every OpenSSH reads (AC-19).

The private part exists only in the returned value: it is never printed (`repr` hides it) and
never passed on a command line.
"""

from __future__ import annotations


class KeyPair:
    """A private key in OpenSSH's format and its public line (`ecdsa-sha2-nistp521 AAAA…`)."""

    __slots__ = ("private", "public")

    def __init__(self, private: bytes, public: str) -> None:
        self.private = private
        self.public = public

    def __repr__(self) -> str:
        return f"KeyPair({self.public[:32]}…)"


def generate() -> KeyPair:
    # Imported here because it is large and most processes that know keys never make one.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

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
