"""Scripts that are part of this package, read when they are first needed.

The only place of the core that reads anything: the files are as constant as the code beside them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def text(name: str) -> str:
    """The file `name` below `mpi_trainer/layout`."""
    return resources.files("mpi_trainer.layout").joinpath(name).read_text(encoding="utf-8")
