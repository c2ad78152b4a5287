"""What a command is given: the target (this machine or a cluster, and as whom), the backend that
serves it, and the names that hints need.

kubectl's own options say where; they may stand before the verb or after it, and the last one
counts. Without any, a cluster is used where kubectl would find one, else this machine. Backends
are imported late: a verb that needs none does not pay for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mpi_trainer.sdk.client.connect import CHOICE, configured

if TYPE_CHECKING:
    from mpi_trainer.kube.config import Config
    from mpi_trainer.local.execute.settings import LocalSettings
    from mpi_trainer.sdk.backends.backend import Backend, JobQuery, JobSummary
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
    from mpi_trainer.sdk.backends.cluster.kinds import Kind

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_NAMESPACE = "default"
LOCAL, CLUSTER = "local", "cluster"
_KEY = "mpi_trainer.target"
_FIELDS = {
    "--backend": "backend",
    "--context": "context",
    "--kubeconfig": "kubeconfig",
    "--as": "as_user",
}
MPIJOB, TRAINJOB = "mpijob", "trainjob"
KIND_GROUPS = {
    MPIJOB: "kubeflow.org",
    TRAINJOB: "trainer.kubeflow.org",
    "pytorchjob": "kubeflow.org",
    "tfjob": "kubeflow.org",
}
SHORT = ("list", "get", "describe", "explain", "logs", "wait", "stop", "resume", "delete")
"""verbs that need no kind before them"""
_PLUGINS = {"kubectl-odh": "kubectl odh", "oc-odh": "oc odh", "oai-cli": "oai-cli"}


class Target(NamedTuple):
    """What was said about where; empty where nothing was."""

    backend: str = ""
    context: str = ""
    namespace: str = ""
    kubeconfig: str = ""
    as_user: str = ""


def _note(field: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def note(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value:
            ctx.meta[_KEY] = current_target(ctx)._replace(**{field: value})

    return note


note_namespace = _note("namespace")


def _options(*, hidden: bool) -> list[Callable[[F], F]]:
    shared: dict[str, Any] = {"expose_value": False, "is_eager": True, "hidden": hidden}
    return [
        click.option("--context", callback=_note("context"), metavar="NAME",
                     help="The kubeconfig's context to use.", **shared),
        click.option("--kubeconfig", callback=_note("kubeconfig"), metavar="FILE",
                     help="Instead of $KUBECONFIG or ~/.kube/config.", **shared),
        click.option("--as", "as_user", callback=_note("as_user"), metavar="USER",
                     help="Act as this user, where you may.", **shared),
        click.option("--backend", type=click.Choice([LOCAL, CLUSTER]), callback=_note("backend"),
                     help="Where jobs are.  [default: a cluster where one is configured]",
                     **shared),
    ]  # fmt: skip


def root_options(function: F) -> F:
    """The options as they stand before the verb, with the namespace."""
    both = click.option(
        "-n", "--namespace", callback=note_namespace, expose_value=False, is_eager=True,
        help="Namespace of the jobs.  [default: the context's, or `default`]",
    )  # fmt: skip
    for option in reversed([both, *_options(hidden=False)]):
        function = option(function)
    return function


def target_options(function: F) -> F:
    """The options as they may stand after the verb; the root's help tells of them."""
    for option in reversed(_options(hidden=True)):
        function = option(function)
    return function


def current_target(ctx: click.Context | None = None) -> Target:
    """What the command line says so far."""
    ctx = ctx or click.get_current_context(silent=True)
    found = ctx.meta.get(_KEY, Target()) if ctx else Target()
    assert isinstance(found, Target)
    return found


def target_with(ctx: click.Context, words: list[str]) -> Target:
    """What the command line says, with words that no command has read yet."""
    target = current_target(ctx)
    pairs = zip(words, [*words[1:], ""], strict=True)
    for word, following in pairs:
        name, equals, value = word.partition("=")
        if name in _FIELDS:
            target = target._replace(**{_FIELDS[name]: value if equals else following})
    return target


def on_cluster(target: Target | None = None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a cluster is meant. What was typed counts before the environment."""
    target = current_target() if target is None else target
    if target.backend:
        return target.backend == CLUSTER
    if target.context or target.kubeconfig or target.as_user:
        return True
    chosen = environ.get(CHOICE, "")
    if chosen not in ("", LOCAL, CLUSTER):
        raise click.UsageError(f"{CHOICE} is {chosen!r}; set it to {LOCAL} or {CLUSTER}")
    return chosen == CLUSTER if chosen else configured(environ)


def cluster_config(target: Target | None = None) -> Config:
    """The cluster's address and our account there; ConfigError says what is missing."""
    return _loaded_config((current_target() if target is None else target)._replace(backend=""))


@lru_cache(maxsize=4)
def _loaded_config(target: Target) -> Config:
    from mpi_trainer.sdk.client import connect

    return connect.cluster_config(
        target.kubeconfig or None,
        target.context or None,
        target.namespace or None,
        target.as_user or None,
    )


def namespace_callback(ctx: click.Context, param: click.Parameter, value: str | None) -> str:
    """The namespace that a verb works in: its own option, the root's, the context's."""
    note_namespace(ctx, param, value)
    target = current_target(ctx)
    if ctx.resilient_parsing:
        return target.namespace or DEFAULT_NAMESPACE
    return working_namespace(target)


def working_namespace(target: Target | None = None) -> str:
    """For a verb that needs a cluster for some of its work only; ConfigError where none is set."""
    target = current_target() if target is None else target
    if target.namespace or not on_cluster(target):
        return target.namespace or DEFAULT_NAMESPACE
    return cluster_config(target).namespace


def check_namespace(in_file: str) -> None:
    """Refuses a file that names another namespace than the command line does."""
    typed = current_target().namespace
    if in_file and typed not in ("", in_file):
        raise click.UsageError(
            f"the file says namespace {in_file}, -n says {typed}; change one of them"
        )


def connect(settings: LocalSettings | None = None, *, single: bool = False) -> Backend:
    """Where this command's jobs are; `settings` are for jobs of this machine, `single` is as in
    `cluster`."""
    if on_cluster():
        return cluster(single=single)
    from mpi_trainer.sdk.backends.local.backend import LocalBackend

    return LocalBackend(settings)


def cluster(*, single: bool = False, kinds: Sequence[Kind] = ()) -> ClusterBackend:
    """The cluster that is meant. Jobs of other kinds than `kinds` are not seen; without them, of
    others than the one that was typed.

    `single` starts in a fraction of the time, and cannot watch, follow or enter anything.
    """
    from mpi_trainer.cli.output.verbosity import say
    from mpi_trainer.sdk.backends.cluster import connections
    from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
    from mpi_trainer.sdk.backends.cluster.kinds import KINDS

    typed = typed_kind()
    meant = tuple(kinds) or tuple(k for k in KINDS if k.resource.kind.lower() == typed) or KINDS
    client = connections.single_answers if single else connections.streaming
    return ClusterBackend(cluster_config(), say, meant, client)


def list_jobs(namespace: str | None, query: JobQuery | None = None) -> list[JobSummary]:
    """The jobs now, newest first."""
    from mpi_trainer.sdk.backends.backend import ALL_JOBS

    return list(run_async(connect(single=True).list(namespace, query or ALL_JOBS)))


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Runs the work to its end; a job that is not there is answered with what was meant."""
    import asyncio

    from mpi_trainer.sdk.errors import JobNotFound

    try:
        return asyncio.run(work)
    except JobNotFound as error:
        from mpi_trainer.cli.suggestion import suggestion

        error.hint = suggestion(error.problem) or error.hint
        raise


def program_name() -> str:
    return _PLUGINS.get(sys.argv[0].rpartition("/")[2], "odh")


def job_kind() -> str:
    """The kind of jobs that the command line is about."""
    return typed_kind() or MPIJOB


def typed_kind() -> str:
    """The kind that the command line names; empty where it names none, as `odh run` does."""
    named = next(filter(is_kind, sys.argv[1:]), "")
    return named.lower().removesuffix("s")


def is_kind(word: str) -> bool:
    """Whether it names a kind of job, as in `odh get mpijob train`."""
    return word.lower().removesuffix("s") in KIND_GROUPS


def command_line(verb: str, job: str = "", namespace: str = "default") -> str:
    """A command line about a job, to be shown to the user."""
    kind = typed_kind()
    short = not kind and verb.split()[0] in SHORT
    words = [program_name(), *([] if short else [kind or MPIJOB]), verb, *([job] if job else [])]
    return " ".join([*words, *(["-n", namespace] if namespace != "default" else [])])
