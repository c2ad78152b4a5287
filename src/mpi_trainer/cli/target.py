"""Where a command works: this machine or a cluster, and as whom. kubectl's own options.

They may stand before the verb or after it; the last one said counts. Without any, a cluster is
used where kubectl would find one, and else this machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mpi_trainer.sdk.client.detection import CHOICE, configured

if TYPE_CHECKING:
    from mpi_trainer.kube.config import Config

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_NAMESPACE = "default"
LOCAL, CLUSTER = "local", "cluster"
_KEY = "mpi_trainer.place"
_FIELDS = {
    "--backend": "backend",
    "--context": "context",
    "--kubeconfig": "kubeconfig",
    "--as": "as_user",
}


class Target(NamedTuple):
    """What was said about where; empty where nothing was."""

    backend: str = ""
    context: str = ""
    namespace: str = ""
    kubeconfig: str = ""
    as_user: str = ""


def _noted(field: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def note(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value:
            ctx.meta[_KEY] = said(ctx)._replace(**{field: value})

    return note


def _options(*, hidden: bool) -> list[Callable[[F], F]]:
    shared: dict[str, Any] = {"expose_value": False, "is_eager": True, "hidden": hidden}
    return [
        click.option("--context", callback=_noted("context"), metavar="NAME",
                     help="The kubeconfig's context to use.", **shared),
        click.option("--kubeconfig", callback=_noted("kubeconfig"), metavar="FILE",
                     help="Instead of $KUBECONFIG or ~/.kube/config.", **shared),
        click.option("--as", "as_user", callback=_noted("as_user"), metavar="USER",
                     help="Act as this user, where you may.", **shared),
        click.option("--backend", type=click.Choice([LOCAL, CLUSTER]), callback=_noted("backend"),
                     help="Where jobs are.  [default: a cluster where one is configured]",
                     **shared),
    ]  # fmt: skip


def anywhere(function: F) -> F:
    """The options as they stand before the verb, with the namespace."""
    both = click.option(
        "-n", "--namespace", callback=_noted("namespace"), expose_value=False, is_eager=True,
        help="Namespace of the jobs.  [default: the context's, or `default`]",
    )  # fmt: skip
    for option in reversed([both, *_options(hidden=False)]):
        function = option(function)
    return function


def placed(function: F) -> F:
    """The options as they may stand after the verb; the root's help tells of them."""
    for option in reversed(_options(hidden=True)):
        function = option(function)
    return function


def said(ctx: click.Context | None = None) -> Target:
    """What the command line says so far."""
    ctx = ctx or click.get_current_context(silent=True)
    found = ctx.meta.get(_KEY, Target()) if ctx else Target()
    assert isinstance(found, Target)
    return found


def told_by(ctx: click.Context, words: list[str]) -> Target:
    """What the command line says, with words that no command has read yet."""
    place = said(ctx)
    pairs = zip(words, [*words[1:], ""], strict=True)
    for word, following in pairs:
        name, equals, value = word.partition("=")
        if name in _FIELDS:
            place = place._replace(**{_FIELDS[name]: value if equals else following})
    return place


def on_cluster(place: Target, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a cluster is meant. What was typed counts before the environment."""
    if place.backend:
        return place.backend == CLUSTER
    if place.context or place.kubeconfig or place.as_user:
        return True
    chosen = environ.get(CHOICE, "")
    return chosen == CLUSTER if chosen else configured(environ)


def config(place: Target | None = None) -> Config:
    """The cluster's address and our account there; ConfigError says what is missing."""
    return _loaded((said() if place is None else place)._replace(backend=""))


@lru_cache(maxsize=4)
def _loaded(place: Target) -> Config:
    from mpi_trainer.sdk.client.connect import cluster_config

    return cluster_config(
        place.kubeconfig or None,
        place.context or None,
        place.namespace or None,
        place.as_user or None,
    )


def namespace(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """The namespace that a verb works in: its own option, the root's, the context's."""
    if value:
        ctx.meta[_KEY] = said(ctx)._replace(namespace=value)
    place = said(ctx)
    if place.namespace or not on_cluster(place) or ctx.resilient_parsing:
        return place.namespace or DEFAULT_NAMESPACE
    return config(place).namespace


def agree(in_file: str) -> None:
    """Refuses a file that names another namespace than the command line does."""
    typed = said().namespace
    if in_file and typed not in ("", in_file):
        raise click.UsageError(
            f"the file says namespace {in_file}, -n says {typed}; change one of them"
        )
