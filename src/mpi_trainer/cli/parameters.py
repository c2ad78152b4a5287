"""Values on the command line that are more than a word: mounts, NAME=VALUE pairs, MPI builds."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mpi_trainer.api import names
from mpi_trainer.api.spelling import nearest
from mpi_trainer.sdk.job.new import HostMount

if TYPE_CHECKING:
    from mpi_trainer.local.mpi.distributions import Distribution


VARIABLE = "variable"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


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
        fault = names.env_name(name) if self._what == VARIABLE else None
        if fault is not None or any(letter.isspace() for letter in name):
            self.fail(
                f"{name!r} is not the name of a {self._what}; use letters, digits and `_`, or `-`",
                param,
                ctx,
            )
        if not equals:
            if name not in os.environ:
                self.fail(f"{name} is not set here; give it as {name}=VALUE", param, ctx)
            text = os.environ[name]
        return name, text


def check_claims(given: Iterable[tuple[str, str]], mounted: Collection[str]) -> None:
    """UsageError where a directory is given for a claim that no volume of the jobs names."""
    for name, _ in given:
        if name in mounted:
            continue
        meant = nearest(name, mounted)
        there = f"its claims are {', '.join(sorted(mounted))}" if mounted else "it mounts none"
        raise click.UsageError(
            f"--claim {name}: the job mounts no PersistentVolumeClaim {name}; "
            + (f"did you mean `{meant}`?" if meant else there)
        )


class ClaimMount(msgspec.Struct, frozen=True):
    name: str
    path: str
    read_only: bool = False


class Claim(click.ParamType[Any]):
    name = "NAME:PATH"

    def convert(self, value: Any, param: Any, ctx: Any) -> ClaimMount:
        claim, _, rest = str(value).partition(":")
        path, _, mode = rest.partition(":")
        if not claim or not path.startswith("/") or mode not in ("", "ro", "rw"):
            self.fail(f"{value!r} is not NAME:PATH or NAME:PATH:ro with an absolute PATH")
        return ClaimMount(claim, path, mode == "ro")


class Toleration(click.ParamType[Any]):
    """As `kubectl taint` writes taints."""

    name = "KEY[=VALUE][:EFFECT]"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, str]:
        taint, colon, effect = str(value).partition(":")
        key, equals, text = taint.partition("=")
        if not key or (colon and effect not in EFFECTS):
            self.fail(f"{value!r} is not {self.name}; EFFECT is one of {', '.join(EFFECTS)}")
        made = {"key": key, "operator": "Equal" if equals else "Exists"}
        return made | ({"value": text} if equals else {}) | ({"effect": effect} if effect else {})


class SecretSource(msgspec.Struct, frozen=True):
    """One key of a Secret as `variable`; without one, all keys under their own names."""

    secret: str
    variable: str = ""
    key: str = ""

    def source(self) -> dict[str, Any]:
        """As a container has it in `env` or `envFrom`."""
        if not self.variable:
            return {"secretRef": {"name": self.secret}}
        place = {"secretKeyRef": {"name": self.secret, "key": self.key}}
        return {"name": self.variable, "valueFrom": place}


class SecretVariable(click.ParamType[Any]):
    name = "SECRET|NAME=SECRET:KEY"

    def convert(self, value: Any, param: Any, ctx: Any) -> SecretSource:
        variable, equals, place = str(value).rpartition("=")
        secret, colon, key = place.partition(":")
        if not secret or bool(equals) != bool(colon) or (equals and not (variable and key)):
            self.fail(f"{value!r} is neither SECRET nor NAME=SECRET:KEY")
        return SecretSource(secret, variable, key)


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
