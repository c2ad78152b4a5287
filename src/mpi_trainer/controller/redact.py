"""Log tails that are fit for a status: short, printable, without secrets (OBS-4). Pure.

Hidden are private keys, tokens, credentials in addresses, whatever follows words such as
`password=` or `--password`, and the values that the job's own template gives to variables with
such names. The text is cut before anything else looks at it (S-1). Danger: a program may print a
secret in a form that nobody can recognise; who cannot accept that switches log tails off.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable

from mpi_trainer.api import bounds, secret_text

LONGEST = 480
_LINES = 6
_AUTH = re.compile("(?i)auth")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*+-----")
_BLANK = re.compile(r"\s")
_KEY_BEGINS = "-----BEGIN "
# With the second set of control characters, which terminals obey too, and those that turn text.
_UNPRINTABLE = re.compile(
    r"(?:\x1b\[|\x9b)[0-9;?]*+[A-Za-z]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def tail(log: str, environment: Iterable[tuple[str, str]] = (), most: int = bounds.LOG_TAIL) -> str:
    """The last lines of a log in one line of text; only the last `most` characters are read."""
    text = printable(log, environment, most)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    short = " | ".join(lines[-_LINES:])
    return short if len(short) <= LONGEST else f"…{short[-LONGEST + 1 :]}"


def printable(
    log: str, environment: Iterable[tuple[str, str]] = (), most: int = bounds.LOG_TAIL
) -> str:
    """The last `most` characters of a log as lines that may be shown."""
    text = _UNPRINTABLE.sub("", _cut(log, most).replace("\r", "\n"))
    for value in itertools.islice(_secrets(environment), bounds.SECRET_VARIABLES):
        text = text.replace(value, secret_text.HIDDEN)
    text = secret_text.without_keys(text)
    text = secret_text.without_tokens(text)
    text = secret_text.without_known(text)
    return secret_text.without_options(secret_text.without_named(text))


@functools.lru_cache(maxsize=2048)
def termination_message(message: str) -> str:
    """As `tail`, of a container's termination message; every pass over its job reads it again."""
    return tail(message, most=bounds.MESSAGE) if message else ""


def _cut(log: str, most: int) -> str:
    """Its end, without a word or a private key that was cut through, here or by the kubelet."""
    text = log[-most:]
    ends = _KEY_ENDS.search(text)
    if ends is not None and _KEY_BEGINS not in text[: ends.start()]:
        return secret_text.HIDDEN + text[ends.end() :]
    if len(log) <= most:
        return log
    begins = _BLANK.search(text)
    return text if begins is None else text[begins.start() :]


def _secrets(environment: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in environment:
        if len(value) >= 4 and (secret_text.names_a_secret(name) or _AUTH.search(name)):
            yield value
