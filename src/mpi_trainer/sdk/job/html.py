"""How jobs look in a notebook: plain HTML with its style inline, no script, nothing fetched.

Guarantee: every text that comes from a job is escaped; a job's name or message cannot become
markup. Colours are readable on light and dark themes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import JobSummary

if TYPE_CHECKING:
    from mpi_trainer.sdk.job.state import JobMetrics, JobState

_COLOURS = {"Succeeded": "#3e8635", "Failed": "#c9190b", "Running": "#0066cc"}
_OTHER = "#8a6d00"


def state_card(state: JobState) -> str:
    rows = [
        ("State", _badge(state.state)),
        ("Why", _text(": ".join(filter(None, (state.reason, state.message))))),
        ("Waits for", _text(state.waits_for)),
        ("Progress", _bar(state.progress)),
        ("Workers", f"{state.workers.active} active of {state.workers.wanted}"),
        ("Started", _time(state.started)),
        ("Ended", _time(state.completed)),
    ]
    title = f"<b>{_text(state.name)}</b> <small>in {_text(state.namespace)}</small>"
    return f"<div>{title}{_pairs(rows)}</div>"


def job_card(
    title: str, facts: Sequence[tuple[str, str]], state: JobState | None, kind: str = "MPIJob"
) -> str:
    """A job as it was described, and how it stood when last seen."""
    rows = [(name, _text(value)) for name, value in facts]
    rows.append(("State", _badge(state.state) if state else "not created"))
    if state is not None:
        rows.append(("Why", _text(state.message)))
        rows.append(("Progress", _bar(state.progress)))
    return f"<div><b>{kind} {_text(title)}</b>{_pairs(rows)}</div>"


def jobs_table(jobs: Iterable[JobSummary]) -> str:
    head = ("Name", "Namespace", "State", "Ranks", "MPI", "Created", "Progress", "Message")
    rows = [
        (
            _text(job.key.name),
            _text(job.key.namespace),
            _badge(job.state),
            f"{job.workers} x {job.slots}",
            _text(job.implementation),
            _time(job.created),
            _bar(job.progress),
            _text(job.message),
        )
        for job in jobs
    ]
    if not rows:
        return "<i>no jobs</i>"
    return _table(head, rows)


def metrics_table(metrics: JobMetrics) -> str:
    rows = [(name, f"{value:g}") for name, value in metrics.metrics.items()]
    rows = [(_text(name), value) for name, value in rows]
    if metrics.seconds is not None:
        rows.append(("seconds", f"{metrics.seconds:.1f}"))
    if metrics.cpu_seconds is not None:
        rows.append(("CPU seconds", f"{metrics.cpu_seconds:.1f}"))
    if metrics.cpus is not None:
        rows.append(("CPUs", f"{metrics.cpus:.2f}"))
    if metrics.memory_bytes is not None:
        rows.append(("memory", f"{metrics.memory_bytes / 2**20:.0f} MiB"))
    if metrics.peak_memory_bytes is not None:
        rows.append(("peak memory of a pod", f"{metrics.peak_memory_bytes / 2**20:.0f} MiB"))
    rows += [
        (_text(f"GPU {gpu.gpu} of {pod.pod}"), f"{gpu.percent:.0f} %")
        for pod in metrics.pods
        for gpu in pod.gpus
        if gpu.percent is not None
    ]
    notes = "".join(f"<div><i>{_text(note)}</i></div>" for note in metrics.notes)
    return f"<div>{_bar(metrics.progress)}{_table(('Metric', 'Value'), rows)}{notes}</div>"


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    shown = [(f"<b>{name}</b>", value) for name, value in rows if value]
    return _table((), shown)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cell = "style='text-align:left;padding:2px 10px'"
    top = "".join(f"<th {cell}>{name}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td {cell}>{value}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if top else ''}<tbody>{body}</tbody></table>"


def _badge(state: str) -> str:
    return f"<b style='color:{_COLOURS.get(state, _OTHER)}'>{_text(state)}</b>"


def _bar(progress: Progress | None) -> str:
    if progress is None or progress.step is None:
        return ""
    of = f"{progress.unit} {progress.step:g}".strip()
    fraction = progress.fraction
    if fraction is None:
        return _text(of)
    label = f"{of}/{progress.total:g}"
    return f"<progress value='{fraction:.4f}' max='1'></progress> {_text(label)}"


def _text(value: str) -> str:
    return escape(value, quote=True).replace("\n", "<br>")


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
