"""`--sort-by`: the order of a list, by a word or by a path into the jobs. Pure.

Smallest first, as kubectl sorts; what has no such value comes last. Jobs that are equal stay in
the order of the list, newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import click
import msgspec

from mpi_trainer.sdk.backends.backend import JobSummary

Place = tuple[int, Any]
_LAST: Place = (3, "")


class SortBy(msgspec.Struct, frozen=True):
    """`by` is one of WORDS or a path."""

    by: str

    @property
    def whole(self) -> bool:
        """Whether it needs whole objects."""
        return self.by not in WORDS


class SortByType(click.ParamType[SortBy]):
    name = "FIELD"

    def convert(self, value: Any, param: Any, ctx: Any) -> SortBy:
        if isinstance(value, SortBy):
            return value
        text = str(value)
        if text.lower() in WORDS:
            return SortBy(text.lower())
        if text.startswith((".", "{")):
            from mpi_trainer.cli.output.custom_columns import job_path
            from mpi_trainer.cli.output.jsonpath import BadPath

            try:
                job_path(text)
            except BadPath as error:
                self.fail(str(error), param, ctx)
            return SortBy(text)
        choices = ", ".join(WORDS)
        raise click.BadParameter(
            f"{text!r} is not one of {choices}, or a path such as .metadata.name", ctx, param
        )

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in WORDS if word.startswith(incomplete)]


def ordered(
    jobs: Iterable[JobSummary],
    by: SortBy,
    now: datetime,
    document: Callable[[JobSummary], Mapping[str, Any]],
) -> list[JobSummary]:
    """`document` is a job as paths see it."""
    if by.by in WORDS:
        return sorted(jobs, key=lambda job: WORDS[by.by](job, now))
    from mpi_trainer.cli.output.custom_columns import job_path

    path = job_path(by.by)
    return sorted(jobs, key=lambda job: _place(next(iter(path.values(document(job))), None)))


def _place(value: Any) -> Place:
    """Numbers before texts: they cannot be compared."""
    if value is None:
        return _LAST
    if isinstance(value, (bool, int, float)):
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, str(value))


def _duration(job: JobSummary, now: datetime) -> Place:
    end = job.completed or (now if job.state == "Running" else None)
    if job.started is None or end is None:
        return _LAST
    return (0, (end - job.started).total_seconds())


WORDS: Mapping[str, Callable[[JobSummary, datetime], Place]] = {
    "name": lambda job, now: (1, job.key.name),
    "age": lambda job, now: (0, (now - job.created).total_seconds()),
    "created": lambda job, now: (0, job.created.timestamp()),
    "state": lambda job, now: (1, job.state),
    "duration": _duration,
    "workers": lambda job, now: (0, job.workers),
}
