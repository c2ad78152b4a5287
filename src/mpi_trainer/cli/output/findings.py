"""Why a job failed, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from mpi_trainer.diagnose.finding import Finding


def paragraph(finding: Finding) -> Iterator[str]:
    """The cause, where, the line that shows it, what to do, and what merely followed."""
    yield f"{_headline(finding)}; {finding.confidence}"
    if finding.line:
        yield f"\n  {finding.line}\n"
    yield f"hint: {finding.remedy}"
    if finding.instead:
        yield f"The same words can mean {finding.instead}."
    if finding.followed:
        yield "\nWhat followed from it:"
        yield from (f"  {line}" for line in finding.followed)


def also(finding: Finding) -> Iterator[str]:
    """What went wrong besides."""
    yield f"\nalso {_headline(finding)}" + (f": {finding.line}" if finding.line else "")


def _headline(finding: Finding) -> str:
    where = finding.where()
    return f"{finding.cause}: {finding.title}" + (f" ({where})" if where else "")
