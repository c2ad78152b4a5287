"""Log tails that are fit for a status: short, printable, without secrets (OBS-4). Pure.

Hidden are private keys, tokens, credentials in addresses, whatever follows words such as
`password=`, and the values that the job's own template gives to variables with such names.
Danger: a program may print a secret in a form that nobody can recognise; the switch that turns
tails off is for those who cannot accept that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 480
_LINES = 6
_HIDDEN = "[redacted]"
_SENSITIVE = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|api_?key|access_?key|private_?key|credential|auth)"
)
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]+-----.*?(-----END [A-Z ]+-----|\Z)", re.DOTALL),
    re.compile(r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9._-]+"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"),
    re.compile(r"\b(?:hf_|ghp_|gho_|github_pat_|sk-|xox[bap]-|glpat-)[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_ASSIGNED = re.compile(
    r"(?i)([\w.-]*(?:pass(?:word|wd|phrase)?|secret|token|api[_-]?key|access[_-]?key|credential)"
    r"[\w.-]*[\"']?\s*[:=]\s*)(\"[^\"]*\"|'[^']*'|\S+)"
)
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def tail(log: str, environment: Iterable[tuple[str, str]] = ()) -> str:
    """The last lines of a log in one line of text."""
    text = _UNPRINTABLE.sub("", log.replace("\r", "\n"))
    for name, value in environment:
        if len(value) >= 4 and _SENSITIVE.search(name):
            text = text.replace(value, _HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(_HIDDEN, text)
    text = _ASSIGNED.sub(rf"\1{_HIDDEN}", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    short = " | ".join(lines[-_LINES:])
    return short if len(short) <= LONGEST else f"…{short[-LONGEST + 1 :]}"
