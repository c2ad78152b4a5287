"""Values on the command line that are more than a word: mounts, NAME=VALUE pairs, MPI builds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mpi_trainer.sdk.job.new import HostMount

if TYPE_CHECKING:
    from mpi_trainer.local.mpi.distributions import Distribution


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


class Mpi(click.ParamType[Any]):
    """The name of an MPI build. They are listed only where one is named: a cluster needs none."""

    name = "MPI"

    def convert(self, value: Any, param: Any, ctx: Any) -> Distribution:
        from mpi_trainer.local.mpi import distributions

        if isinstance(value, distributions.Distribution):
            return value
        found = distributions.named(str(value))
        if found is None:
            choices = ", ".join(_builds())
            raise click.BadParameter(f"{value!r} is not one of {choices}", ctx, param)
        return found

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(_builds())}]"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in _builds() if name.startswith(incomplete)]


def _builds() -> list[str]:
    from mpi_trainer.local.mpi.distributions import DISTRIBUTIONS

    return [each.name for each in DISTRIBUTIONS]
