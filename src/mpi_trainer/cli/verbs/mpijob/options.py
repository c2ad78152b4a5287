"""Arguments and options that several verbs share, and completion of job names."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from mpi_trainer.cli import context
from mpi_trainer.cli.context import DEFAULT_NAMESPACE
from mpi_trainer.cli.output.formats import Format, FormatType

if TYPE_CHECKING:
    from mpi_trainer.sdk.backends.backend import JobSummary

F = TypeVar("F", bound=Callable[..., Any])
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_WHOLE = r"(?:\d{1,9}(?:\.\d{1,6})?(?:ms|[smhdw]))+"
_PART = r"(\d+(?:\.\d+)?)(ms|[smhdw])"


def completed_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Jobs that begin so, with their state. Completion never complains: it offers nothing."""
    # What was typed before the name is this context's, which click has left by now.
    with suppress(Exception), ctx.scope(cleanup=False):
        return [
            CompletionItem(s.key.name, help=s.state)
            for s in _jobs(context.current_target(ctx), _kind(ctx))
            if s.key.name.startswith(incomplete)
        ]
    return []


def _jobs(said: context.Target, kind: str) -> list[JobSummary]:
    from mpi_trainer.cli.context import cluster, list_jobs, run_async

    if not context.on_cluster(said):
        found = list_jobs(said.namespace or DEFAULT_NAMESPACE)
        return [job for job in found if kind in ("", job.kind.lower())]
    namespace = said.namespace or context.cluster_config(said).namespace or DEFAULT_NAMESPACE
    from mpi_trainer.cli.verbs import all_kinds

    meant = all_kinds.kind_of(kind)
    backend = cluster(single=True, kinds=[meant] if meant else ())
    return list(run_async(backend.list(namespace)))


def _kind(ctx: click.Context | None) -> str:
    """The kind that was typed, which while completing is not in our own arguments."""
    while ctx is not None:
        for word in (ctx.info_name or "").split():
            if word in context.KIND_GROUPS:
                return word
        ctx = ctx.parent
    return ""


def seconds(text: str) -> float | None:
    """`90` and `90s` are a minute and a half; None where it is no span."""
    text = text.strip().lower()
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", text):
        return float(text)
    if not re.fullmatch(_WHOLE, text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))


class Span(click.ParamType[float]):
    """`90`, `90s`, `5m`, `1h30m`."""

    name = "DURATION"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, float):
            return value
        found = seconds(str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration such as 90, 90s, 5m or 1h30m", param, ctx)
        return found


def whole_seconds(span: float | None) -> int | None:
    """As a deadline is written: at least one."""
    return None if span is None else max(int(span), 1)


class Since(click.ParamType[datetime]):
    """A duration back from now, or a time such as 2026-11-15T12:00:00Z."""

    name = "TIME"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        if isinstance(value, datetime):
            return value
        span = seconds(str(value))
        try:
            if span is not None:
                return datetime.now(UTC) - timedelta(seconds=span)
            found = datetime.fromisoformat(str(value))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither like 10m nor like 2026-11-15T12:00:00Z", param, ctx)
        return found if found.tzinfo else found.astimezone()


class LabelSelector(click.ParamType[str]):
    """As kubectl writes it; the text, where it is one."""

    name = "SELECTOR"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from mpi_trainer.api.label_selector import BadSelector, parse

        try:
            parse(str(value))
        except BadSelector as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Pattern(click.ParamType[str]):
    name = "REGEX"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is not a regular expression: {error}", param, ctx)
        return str(value)


def _bare(
    ctx: click.Context, param: click.Parameter, value: str | tuple[str, ...]
) -> str | tuple[str, ...]:
    """Names without `mpijob.kubeflow.org/` before them, which `-o name` prints."""
    if isinstance(value, tuple):
        return tuple(map(_bare_name, value))
    return _bare_name(value)


def _bare_name(text: str) -> str:
    kind, slash, bare = text.rpartition("/")
    return bare if slash and context.is_kind(kind.partition(".")[0]) else text


name = click.argument("name", callback=_bare, shell_complete=completed_names)
names = click.argument(
    "names", nargs=-1, metavar="NAME...", callback=_bare, shell_complete=completed_names
)
some_names = click.argument(
    "names", nargs=-1, required=True, metavar="NAME...", callback=_bare,
    shell_complete=completed_names,
)  # fmt: skip


def namespace(function: F) -> F:
    """-n, and hidden beside it the other options that say where."""
    option = click.option(
        "-n", "--namespace", callback=context.namespace_callback,
        help="Namespace of the job.  [default: the context's, or `default`]",
    )  # fmt: skip
    return context.target_options(option(function))


def noted_namespace(function: F) -> F:
    """-n for a verb that mostly asks no cluster: `context.working_namespace` says which it is."""
    option = click.option(
        "-n", "--namespace", callback=context.note_namespace, expose_value=False,
        help="Namespace of the job.  [default: the context's, or `default`]",
    )  # fmt: skip
    return context.target_options(option(function))


every_namespace = click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="Jobs of every namespace."
)
output = click.option(
    "-o", "--output", "form", type=FormatType(columns=True), default=Format(), show_default=False,
    help="json, yaml, wide, name, jsonpath=EXPRESSION or custom-columns=HEADER:PATH,...",
)  # fmt: skip
data_output = click.option(
    "-o", "--output", "form", type=FormatType(("json", "yaml")), default=Format(),
    show_default=False, help="json, yaml or jsonpath=EXPRESSION.",
)  # fmt: skip
timeout = click.option(
    "--timeout", type=Span(), help="Give up after this long, with exit code 124."
)


def submission(function: F) -> F:
    """What becomes of a job that a verb submits: followed, waited for, shown or only checked."""
    for option in (
        click.option(
            "-o", "--output", "form", type=FormatType(("json", "yaml", "name")), default=Format(),
            show_default=False,
            help="json, yaml, name or jsonpath=EXPRESSION: print the job as stored.",
        ),
        click.option(
            "--dry-run", is_flag=True, help="Check and print the manifest; submit nothing."
        ),
        timeout,
        click.option("--wait", is_flag=True, help="Wait for its end; the exit code is the job's."),
        click.option(
            "--follow", is_flag=True, help="Print its output; the exit code is the job's."
        ),
    ):  # fmt: skip
        function = option(function)
    return function
