"""The program that holds a pod's namespaces open, built from the few lines beside this file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tools.cluster.paths import cache_root, content_hash
from tools.cluster.processes import run

_SOURCE: Final = Path(__file__).parent / "pause_image"


def pause_program() -> Path:
    """The built program; compiled on first use."""
    key = content_hash((_SOURCE / "main.go").read_bytes())
    target = cache_root() / "bin" / f"pause-{key}" / "pause"
    if not target.exists():
        partial = target.with_name(f".pause-{os.getpid()}")
        environment = ["env", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS="]
        flags = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [*environment, "go", "build", "-C", str(_SOURCE), *flags, "-o", str(partial)]
        run(command, seconds=120)
        partial.rename(target)
    return target
