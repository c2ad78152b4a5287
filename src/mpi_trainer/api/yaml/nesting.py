"""JSON that is nested so deeply that decoders refuse it: how deep, and what is left of it. Pure.

Both functions take linear time and no stack, whatever the text is.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import Final

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
_TOKENS = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_BRACKETS: Final = b"{}[]"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = tuple((byte in b"{[") - (byte in b"}]") for byte in range(256))
_CUT: Final = b"mpi-trainer.io/nested-too-deeply-"


def depth(text: bytes) -> int:
    """How many objects and lists are open at once, at most."""
    brackets = _STRINGS.sub(b"", text).translate(None, _OTHERS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def pruned(text: bytes, most: int) -> bytes:
    """With a mark in place of whatever is nested more than `most` levels deep.

    The mark has a digest of what it stands for, so that two texts which differ stay different.
    """
    kept: list[bytes] = []
    level = start = opened = 0
    for token in _TOKENS.finditer(text):
        step = _STEPS[text[token.start()]]
        if step > 0:
            level += 1
            if level == most + 1:
                opened = token.start()
                kept.append(text[start:opened])
        elif step < 0:
            if level == most + 1:
                start = token.end()
                digest = hashlib.sha256(text[opened:start]).hexdigest().encode()
                kept.append(b'"' + _CUT + digest + b'"')
            level -= 1
    if level <= most:
        kept.append(text[start:])
    return b"".join(kept)


def was_pruned(text: bytes) -> bool:
    """Whether a mark is in it. Who writes the mark into an object gets it treated as too deep."""
    return _CUT in text
