"""The live view of a job as lines of text. Pure: details in, lines out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from mpi_trainer.cli.output import formatting
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import JobDetails, LogLine, PodInfo
from mpi_trainer.sdk.backends.views import details_summary

BAR = 30
MOST_PODS = 12


def view(
    details: JobDetails, lines: Iterable[LogLine], now: datetime, width: int, height: int
) -> list[str]:
    """State, progress, pods and ranks, last lines; no line is wider than `width`. Where there are
    more than `height`, the oldest lines of output go first, then the last pods."""
    head = list(_head(details, now))
    pods = ["", *_pods(details)] if details.pods else []
    output = ["", *(str(line) for line in lines)]
    room = max(height - len(head), 0)
    if len(pods) > room:
        pods = [*pods[: max(room - 1, 0)], "  …"][:room]
    left = room - len(pods) - 1
    output = ["", *output[1:][-left:]] if left > 0 and len(output) > 1 else []
    return [_cut(line, width) for line in (*head, *pods, *output)][:height]


def headline(details: JobDetails, now: datetime) -> str:
    """The one line that says how the job stands, for whoever reads no terminal."""
    job = details_summary(details)
    parts = [f"{job.key.name} {job.state}"]
    if job.started:
        parts.append(formatting.between(job.started, job.completed or now))
    parts += [formatting.progress_words(job.progress), formatting.metric_words(job.progress)]
    message = details.waits_for and f"waits for {details.waits_for}"
    return "  ".join(part for part in (*parts, message) if part)


def _head(details: JobDetails, now: datetime) -> Iterator[str]:
    yield headline(details, now)
    message = details.job.message
    if message:
        yield message
    if details.progress is not None and details.progress.fraction is not None:
        yield bar(details.progress, now)


def bar(progress: Progress, now: datetime) -> str:
    fraction = progress.fraction or 0.0
    full = int(fraction * BAR)
    left = formatting.eta_words(progress, now.timestamp())
    eta = f"  {left} left" if left else ""
    return f"[{'█' * full}{'·' * (BAR - full)}] {fraction:4.0%}{eta}"


def _pods(details: JobDetails) -> Iterator[str]:
    ranks: dict[str, list[str]] = {}
    for rank in details.ranks:
        mark = f"{rank.rank}" if not rank.end else f"{rank.rank} ({rank.end})"
        ranks.setdefault(rank.pod, []).append(mark)
    shown = details.pods[:MOST_PODS]
    wide = max(len(pod.name) for pod in shown)
    for pod in shown:
        here = ", ".join(ranks.get(pod.name, ()))
        yield f"  {pod.name:<{wide}}  {_phase(pod):<9}" + (f"  ranks {here}" if here else "")
    rest = Counter(_phase(pod) for pod in details.pods[MOST_PODS:])
    if rest:
        yield "  and " + ", ".join(f"{count} {phase}" for phase, count in rest.items())


def _phase(pod: PodInfo) -> str:
    return "Starting" if pod.phase == "Running" and not pod.ready else pod.phase


def _cut(line: str, width: int) -> str:
    """One row of the terminal; what a program printed to move the cursor does not move ours."""
    clean = "".join(c if c.isprintable() else " " for c in line[: 4 * width])
    return clean if len(clean) <= width else f"{clean[: width - 1]}…"
