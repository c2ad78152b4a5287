"""What the tool is doing, for a person: one line a step, with the time since the start."""

from __future__ import annotations

import sys
import time
from typing import Final

_START: Final = time.monotonic()


def say(component: str, step: str) -> None:
    """Print one step to standard error; standard output belongs to data."""
    elapsed = time.monotonic() - _START
    print(f"[{elapsed:7.1f} s] {component}: {step}", file=sys.stderr, flush=True)
