"""Which names the agent's scripts use for variables of their own: a job may use them as well."""

from __future__ import annotations

import re
from typing import Final

from mpi_trainer.layout.agent import scripts

_ASSIGNED: Final = re.compile(r"(?:^|[\s;{(])([a-z][a-z0-9_]*)=", re.MULTILINE)
_READ: Final = re.compile(r"\bread -r ([a-z][a-z0-9_ ]*)")
_LOOPED: Final = re.compile(r"\bfor ([a-z][a-z0-9_]*) in\b")


def assigned(*names: str) -> set[str]:
    """The variables of these scripts."""
    text = "\n".join(scripts.text(name) for name in names)
    read = {name for line in _READ.findall(text) for name in line.split()}
    return {*_ASSIGNED.findall(text), *_LOOPED.findall(text), *read} - {"_"}
