"""A job in a few words: a row of a table, a line of progress, or plain data. Pure.

The same in `list`, `get`, `describe` and `watch`, and the data are the same in every format.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from mpi_trainer.cli import context

if TYPE_CHECKING:
    from mpi_trainer.diagnose.progress import Progress
    from mpi_trainer.sdk.backends.backend import JobSummary

COLUMNS = ("NAME", "STATE", "WORKERS", "PROGRESS", "AGE", "DURATION")
WIDE = ("SLOTS", "MPI", "REASON", "MESSAGE")
LONGEST = 80


def columns(*, wide: bool, everywhere: bool) -> tuple[str, ...]:
    return (*(("NAMESPACE",) if everywhere else ()), *COLUMNS, *(WIDE if wide else ()))


def row(job: JobSummary, now: datetime, *, wide: bool, everywhere: bool) -> tuple[str, ...]:
    end = job.completed or (now if job.state == "Running" else None)
    cells = (
        job.key.name,
        job.state,
        str(job.workers),
        progress_words(job.progress) or "-",
        between(job.created, now),
        between(job.started, end),
    )
    more = (str(job.slots), job.implementation or "-", job.reason or "-", one_line(job.message))
    return (*((job.key.namespace,) if everywhere else ()), *cells, *(more if wide else ()))


def progress_words(progress: Progress | None) -> str:
    """`45% epoch 9/20`; empty where the job has said nothing."""
    if progress is None or progress.step is None:
        return ""
    if progress.fraction is None:
        return f"{progress.unit} {progress.step:g}".strip()
    share = f"{int(progress.fraction * 100)}%"
    if progress.unit == "%":
        return share
    if progress.total == 100 and progress.unit.startswith("epoch "):
        return f"{progress.unit} {share}"
    return f"{share} {progress.unit or 'step'} {progress.step:.4g}/{progress.total:g}"


def eta_words(progress: Progress | None, now: float) -> str:
    """How long it will still take; empty where nobody can know."""
    if progress is None or progress.eta_seconds is None or not progress.eta_seconds:
        return ""
    return duration(max(progress.eta_seconds - max(now - progress.at, 0.0), 0.0))


def metric_words(progress: Progress | None) -> str:
    if progress is None:
        return ""
    return "  ".join(f"{name} {value:.6g}" for name, value in progress.metrics.items())


def data(job: JobSummary) -> dict[str, Any]:
    """A list's item: the object as its API has it, and beside that what the table shows. Times as
    RFC 3339; what is not known is left out."""
    facts: dict[str, Any] = {
        "name": job.key.name,
        "namespace": job.key.namespace,
        "state": job.state,
        "reason": job.reason,
        "message": job.message,
        "created": moment(job.created),
        "started": moment(job.started),
        "completed": moment(job.completed),
        "workers": job.workers,
        "slots": job.slots,
        "implementation": job.implementation,
        "progress": progress_data(job.progress),
    }
    known = {key: value for key, value in facts.items() if value not in (None, "")}
    return {**(job.manifest or {}), **known}


def progress_data(progress: Progress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    facts: dict[str, Any] = {
        "step": progress.step,
        "total": progress.total,
        "unit": progress.unit or None,
        "fraction": progress.fraction,
        "etaSeconds": progress.eta_seconds,
        "metrics": dict(progress.metrics) or None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def moment(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="seconds").replace("+00:00", "Z")


def full_name(name: str) -> str:
    """As kubectl has it; the bare name where no kind was typed."""
    kind = context.typed_kind()
    return kind_and_name(kind, name) if kind else name


def kind_and_name(kind: str, name: str) -> str:
    return f"{kind.lower()}.{context.KIND_GROUPS[kind.lower()]}/{name}"


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def duration(span: float) -> str:
    """At most two units, as `kubectl get` has it: 45s, 2m14s, 3h5m, 4d2h."""
    whole = max(int(span), 0)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return _two(whole, 60, "m", 1, "s")
    if whole < 86400:
        return _two(whole, 3600, "h", 60, "m")
    return _two(whole, 86400, "d", 3600, "h")


def between(begin: datetime | None, end: datetime | None) -> str:
    return "-" if begin is None or end is None else duration((end - begin).total_seconds())


def _two(span: int, large: int, large_name: str, small: int, small_name: str) -> str:
    first, rest = divmod(span, large)
    second = rest // small
    return f"{first}{large_name}{second}{small_name}" if second else f"{first}{large_name}"
