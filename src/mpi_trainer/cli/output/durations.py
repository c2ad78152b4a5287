"""Spans of time as people write and read them: `90`, `90s`, `5m`, `1h30m`; `2m14s`, `3d4h`."""

from __future__ import annotations

import re
from datetime import datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
# Compiled on first use: a list of jobs needs none of them.
_WHOLE = r"(?:\d{1,9}(?:\.\d{1,6})?(?:ms|[smhdw]))+"
_PART = r"(\d+(?:\.\d+)?)(ms|[smhdw])"


def seconds(text: str) -> float | None:
    """`90` and `90s` are a minute and a half; None where it is no span."""
    text = text.strip().lower()
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", text):
        return float(text)
    if not re.fullmatch(_WHOLE, text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))


def short(span: float) -> str:
    """At most two units, as `kubectl get` has it: 45s, 2m14s, 3h5m, 4d2h."""
    whole = max(int(span), 0)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return _two(whole, 60, "m", 1, "s")
    if whole < 86400:
        return _two(whole, 3600, "h", 60, "m")
    return _two(whole, 86400, "d", 3600, "h")


def between(begin: datetime | None, end: datetime | None) -> str:
    return "-" if begin is None or end is None else short((end - begin).total_seconds())


def _two(span: int, large: int, large_name: str, small: int, small_name: str) -> str:
    first, rest = divmod(span, large)
    second = rest // small
    return f"{first}{large_name}{second}{small_name}" if second else f"{first}{large_name}"
