"""Kubernetes quantities, exactly: `500m`, `1.5Gi`, `12e6` as decimal numbers.

Nothing is rounded but what Kubernetes itself rounds: amounts below a nano-unit go up to one.
Danger: `m` is milli, so a memory of `512m` is half a byte; validation warns of it.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SYNTAX = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_LONGEST = 64
_LARGEST_EXPONENT = 60
_EXACT = Context(prec=200)
_NANO = Decimal("1e-9")

RULE = "must be a quantity: a number with an optional suffix such as m, k, M, Gi or e3"
REMEDY = "write for example `2`, `500m`, `1.5` or `16Gi`"


def parse(text: str | int | float) -> Decimal:
    """The number that `text` stands for. ValueError where it is not a quantity."""
    written = str(text)
    found = _SYNTAX.fullmatch(written) if len(written) <= _LONGEST else None
    if found is None or isinstance(text, bool):
        raise ValueError(RULE)
    number = _EXACT.create_decimal(found["number"])
    suffix = found["suffix"] or ""
    if suffix in _BINARY:
        number = _EXACT.multiply(number, Decimal(1024 ** _BINARY[suffix]))
    else:
        exponent = int(found["exponent"] or 0) + _DECIMAL[suffix]
        if abs(exponent) > _LARGEST_EXPONENT:
            raise ValueError(RULE)
        number = number.scaleb(exponent, _EXACT)
    rounding = ROUND_CEILING if number >= 0 else ROUND_FLOOR
    rounded = number.quantize(_NANO, rounding, _EXACT)
    return number if rounded == number else rounded


def is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()


def decimal_text(number: Decimal) -> str:
    """The shortest decimal form without a fraction: `1500m`, `2`, `3k`."""
    for suffix in ("E", "P", "T", "G", "M", "k", "", "m", "u", "n"):
        scaled = number.scaleb(-_DECIMAL[suffix], _EXACT)
        if is_whole(scaled) and (scaled or not suffix):
            return f"{int(scaled)}{suffix}"
    raise ValueError("finer than a nano-unit")


def binary_text(number: Decimal) -> str:
    """The shortest form in powers of 1024, for memory: `16Gi`, `1536Mi`; decimal if not whole."""
    if number and is_whole(number):
        for suffix, power in reversed(_BINARY.items()):
            if not int(number) % 1024**power:
                return f"{int(number) // 1024**power}{suffix}"
    return decimal_text(number)


def resource_text(resource: str, amount: Decimal) -> str:
    """As people write an amount of this resource: memory in powers of 1024."""
    sized = resource.endswith(("memory", "ephemeral-storage"))
    return binary_text(amount) if sized else decimal_text(amount)
