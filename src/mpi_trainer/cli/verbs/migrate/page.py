"""`odh migrate report -o html`: one page that needs nothing else, to be sent around.

Guarantee: names and reasons are text of users, and stand on the page as text only; the page loads
nothing and runs nothing, and its own policy forbids both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape

from mpi_trainer.migrate.progress import JobProgress, Progress

LONGEST = 300
"""characters of a cell: a user's text may have any length"""
MOST_JOBS = 5000
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 75rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 0 0 2rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0;
  border-bottom: 1px solid #8884; overflow-wrap: anywhere }
td.n { text-align: right; font-variant-numeric: tabular-nums }
"""


def page(left: Progress, where: str, now: datetime) -> str:
    """`where` is the namespace, or says that it is all of them."""
    title = f"MPI jobs to migrate in {where}"
    parts = (
        f"<h1>{_text(title)}</h1>",
        f"<p>{_text(_sentence(left))} As of {now:%Y-%m-%d %H:%M} UTC.</p>",
        *_counts("Jobs by API", "API", left.by_api),
        *_counts("What MPIJobs would take", "effort", left.by_effort),
        *_counts("Why", "field and what to do", left.by_reason),
        *_jobs(left.jobs),
    )
    head = (
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
    )
    lines = ("<!doctype html>", '<html lang="en">', *head, *parts, "</html>")
    return "\n".join(lines)


def _sentence(left: Progress) -> str:
    done = sum(job.kind == "TrainJob" for job in left.jobs)
    share = f" ({100 * done // len(left.jobs)} %)" if left.jobs else ""
    return f"{done} of {len(left.jobs)} jobs{share} are TrainJobs."


def _counts(title: str, name: str, counts: Mapping[str, int]) -> Iterator[str]:
    if counts:
        yield f"<h2>{_text(title)}</h2>"
        rows = ((one, str(count)) for one, count in list(counts.items())[:100])
        yield from _table((name, "jobs"), rows, number=1)


def _jobs(jobs: Sequence[JobProgress]) -> Iterator[str]:
    yield "<h2>Jobs</h2>"
    rows = (
        (job.namespace, job.name, job.kind, job.api, "yes" if job.ended else "no", job.effort,
         "; ".join(job.reasons))
        for job in jobs[:MOST_JOBS]
    )  # fmt: skip
    yield from _table(("namespace", "name", "kind", "API", "ended", "effort", "reason"), rows)
    if len(jobs) > MOST_JOBS:
        yield f"<p>And {len(jobs) - MOST_JOBS} more jobs: use -o json.</p>"


def _table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], number: int | None = None
) -> Iterator[str]:
    yield "<table><thead><tr>"
    yield "".join(f'<th scope="col">{_text(title)}</th>' for title in titles)
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = (
            f'<td class="n">{_text(cell)}</td>' if n == number else f"<td>{_text(cell)}</td>"
            for n, cell in enumerate(row)
        )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def _text(value: str) -> str:
    """As characters that a page shows and nobody obeys: no markup, no marks that turn the
    direction of what stands around them."""
    cut = value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    return escape("".join(one if one.isprintable() else "\ufffd" for one in cut))
