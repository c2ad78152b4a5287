"""Writes docs/troubleshooting.md anew, from the catalogue of causes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mpi_trainer.diagnose.rules import FAMILIES, RULES
from mpi_trainer.diagnose.rules.model import Cause

PAGE = Path(__file__).parents[1] / "docs" / "troubleshooting.md"
_SHOWN = 3
_HEAD = """\
# Troubleshooting

Every cause that the diagnosis knows, with lines that show it, why it happens and what to do. Find
yours by its name or by searching for a line of your log. A program's own words count more than
MPI's, and the first failure more than what followed from it; texts that only say that something
failed are no cause. `python -m bench.diagnose FOLDER` measures how often it is right.

This page is written by `make docs`.
"""


def page() -> str:
    return "\n".join([_HEAD, *_lines()])


def _lines() -> Iterator[str]:
    for family, modules in FAMILIES.items():
        yield f"## {family}\n"
        for module in modules:
            for cause in module.CAUSES:
                yield from _entry(cause)


def _entry(cause: Cause) -> Iterator[str]:
    yield f"### {cause.name}\n"
    yield f"{cause.title}. {cause.why}\n"
    examples = list(
        dict.fromkeys(e for rule in RULES if rule.cause == cause.name for e in rule.examples[:1])
    )
    if examples:
        yield "```text"
        yield from examples[:_SHOWN]
        yield "```\n"
    yield f"**What to do:** {cause.remedy}\n"


if __name__ == "__main__":
    PAGE.write_text(page())
