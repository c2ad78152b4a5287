"""Values on the command line that are more than a word: mounts and NAME=VALUE pairs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from mpi_trainer.sdk.newjob import HostMount


class Mount(click.ParamType[Any]):
    name = "SRC:DST"

    def convert(self, value: Any, param: Any, ctx: Any) -> HostMount:
        source, _, rest = str(value).partition(":")
        target, _, mode = rest.partition(":")
        if not source or not target.startswith("/") or mode not in ("", "ro", "rw"):
            self.fail(f"{value!r} is not SRC:DST or SRC:DST:ro with an absolute DST", param, ctx)
        if not Path(source).exists():
            self.fail(f"{source} does not exist; create it with `mkdir -p {source}`", param, ctx)
        return HostMount(str(Path(source).resolve()), target, mode == "ro")


class Pair(click.ParamType[Any]):
    """NAME=VALUE, or NAME alone for the caller's own value."""

    name = "NAME=VALUE"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not name:
            self.fail(f"{value!r}: the {self._what} has no name", param, ctx)
        if not equals:
            if name not in os.environ:
                self.fail(f"{name} is not set here; give it as {name}=VALUE", param, ctx)
            text = os.environ[name]
        return name, text
