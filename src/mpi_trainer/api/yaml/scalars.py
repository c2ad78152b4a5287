"""What a plain YAML scalar means: exactly what kubectl makes of it.

kubectl reads YAML 1.1 booleans (`yes`, `on`, even `y`), Go's integers (`0777` and `0o777` are
octal, `1_000` is a thousand), and nothing else of YAML 1.1: dates and `1:30` stay strings. A
number without a fraction is an integer, however it was written (`1e3`, `2.0`), as in the JSON
that kubectl sends. Danger: an unquoted `no` or `12e4` is not text; the type check names it.
"""

from __future__ import annotations

import math
import re

TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
NULL = frozenset({"", "~", "null", "Null", "NULL"})
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NUMBER_STARTS = frozenset("+-.0123456789")
_LONGEST_NUMBER = 400
_WHOLE_BELOW = 2**63

Scalar = str | int | float | bool | None


def plain(text: str) -> Scalar:
    """The value of an unquoted scalar. ValueError where JSON has no such number."""
    if text in NULL:
        return None
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    if NOT_FINITE.fullmatch(text):
        raise ValueError("a number must be finite")
    return _number(text) if text[0] in _NUMBER_STARTS else text


def _number(text: str) -> str | int | float:
    digits = text.replace("_", "")
    whole, real = _INTEGER.fullmatch(digits), _FLOAT.fullmatch(digits)
    if not whole and not real:
        return text
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError("a number must fit 64 bits")
    value: int | float = _integer(digits) if whole else float(digits)
    if not math.isfinite(value):
        raise ValueError("a number must be finite")
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_BELOW:
        value = int(value)
    if isinstance(value, int) and not -_WHOLE_BELOW <= value < 2 * _WHOLE_BELOW:
        raise ValueError("a whole number must fit 64 bits")
    return value


def _integer(digits: str) -> int:
    sign = -1 if digits[0] == "-" else 1
    body = digits.lstrip("+-").lower()
    for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8)):
        if body.startswith(prefix):
            return sign * int(body[2:], base)
    if body.startswith("0") and body != "0":
        return sign * int(body, 8)
    return sign * int(body)
