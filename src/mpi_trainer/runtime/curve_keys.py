"""CURVE key pairs for ZeroMQ: X25519, written in Z85. By chance, so nobody can work them out.

The private part exists only in the returned value: it is never printed (`repr` hides it).
"""

from __future__ import annotations

from typing import Final

_DIGITS: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)


class CurvePair:
    """Both parts in Z85."""

    __slots__ = ("private", "public")

    def __init__(self, private: str, public: str) -> None:
        self.private = private
        self.public = public

    def __repr__(self) -> str:
        return f"CurvePair({self.public})"


def generate() -> CurvePair:
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
