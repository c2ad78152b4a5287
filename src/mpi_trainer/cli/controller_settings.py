"""Options that say what a controller was told, for verbs that show what it would make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mpi_trainer.api.kinds.annotations import OPEN, RESTRICTED
from mpi_trainer.api.kinds.network_isolation import ALL, EGRESS_WORDS, IsolationDefault, ranges
from mpi_trainer.kube.resources import POD_GROUPS
from mpi_trainer.render.frame import Facts
from mpi_trainer.render.gang.model import GangSettings

F = TypeVar("F", bound=Callable[..., Any])
_SERVED = frozenset(one.group for one in POD_GROUPS)
_AS = "As the controller's option."


def options(command: F) -> F:
    """Adds them; the command gets `domain`, `gang`, `closed` and `egress`, which `facts` takes."""
    for add in reversed(
        (
            click.option("--cluster-domain", "domain", default="", help=_AS),
            click.option("--gang-scheduling", "gang", default="", metavar="NAME", help=_AS),
            click.option(
                "--network-policy-default",
                "closed",
                type=click.Choice([OPEN, RESTRICTED]),
                default=OPEN,
                help=_AS,
            ),
            click.option(
                "--network-egress-default",
                "egress",
                default=ALL,
                metavar="WHOM",
                callback=_egress,
                help=_AS,
            ),
        )
    ):
        command = add(command)
    return command


def _egress(ctx: click.Context, param: click.Parameter, text: str) -> str:
    wrong = "" if text in EGRESS_WORDS else ranges(text)[1]
    if wrong:
        raise click.BadParameter(wrong, ctx, param)
    return text


def facts(domain: str, gang: str, closed: str, egress: str) -> Facts:
    """For a cluster that has all PodGroups."""
    return Facts(
        domain=domain,
        isolation=IsolationDefault(closed, egress),
        gang=GangSettings(gang, _SERVED),
    )
