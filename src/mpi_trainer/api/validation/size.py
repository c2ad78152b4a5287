"""Whether a spec is small and flat enough to be read at all; nothing else is judged before this."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.errors import INVALID, TOO_LONG, FieldError
from mpi_trainer.api.yaml import nesting

_SPEC = ("spec",)


def errors(data: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """What is wrong with the size and depth of `spec`, in words that say what to do."""
    try:
        return text_errors(_text(data.get("spec")))
    except RecursionError:
        return (_too_deep(f"more than {bounds.NESTING}"),)


def text_errors(spec: bytes) -> tuple[FieldError, ...]:
    """As `errors`, of a spec as JSON that has not been decoded."""
    if len(spec) > bounds.SPEC_BYTES:
        return (too_large(len(spec)),)
    # Every level opens a bracket: most specs need no closer look.
    if spec.count(b"{") + spec.count(b"[") > bounds.NESTING:
        levels = nesting.depth(spec)
        if levels > bounds.NESTING:
            return (_too_deep(str(levels)),)
    return ()


def _text(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (OverflowError, UnicodeEncodeError, TypeError):
        # Numbers and text that no API server sends; the rules report them later.
        return json.dumps(value, default=str).encode()


def too_large(size: int) -> FieldError:
    rule = f"has {size} bytes as JSON, and at most {bounds.SPEC_BYTES} (256 KiB) are read"
    remedy = "move scripts and data into a ConfigMap, a volume or the image, and mount them"
    return FieldError(_SPEC, TOO_LONG, rule=rule, remedy=remedy)


def _too_deep(levels: str) -> FieldError:
    rule = f"is nested {levels} levels deep, and at most {bounds.NESTING} are read"
    return FieldError(_SPEC, INVALID, rule=rule, remedy="remove the field that is nested so deeply")
