"""Writes the tables of docs/rights.md anew, from what admission asks."""

from __future__ import annotations

from pathlib import Path

from mpi_trainer.webhook.pod_fields import (
    CONTAINER_LISTS,
    GUARDED,
    HARMLESS,
    HOOKS,
    MAKE_PODS,
    PROBES,
    GuardedField,
)

PAGE = Path(__file__).parents[1] / "docs" / "rights.md"
MARK = "<!-- {}: written by `make docs` -->"
GUARDED_MARK, HARMLESS_MARK, END = MARK.format("asked"), MARK.format("harmless"), "<!-- end -->"


def page(text: str) -> str:
    """The page with both tables as the code has them."""
    text = _between(text, GUARDED_MARK, _guarded())
    return _between(text, HARMLESS_MARK, _harmless())


def _between(text: str, mark: str, table: str) -> str:
    before, _, rest = text.partition(mark)
    _, _, after = rest.partition(END)
    return f"{before}{mark}\n{table}\n{END}{after}"


def _guarded() -> str:
    rows: dict[tuple[str, str], list[str]] = {}
    for path, field in GUARDED.items():
        name = _short(path)
        names = rows.setdefault((field.effect, _other_right(field)), [])
        if name not in names:
            names.append(name)
    lines = [
        f"| {', '.join(f'`{name}`' for name in names)} | {effect} | {right} |"
        for (effect, right), names in rows.items()
    ]
    return "\n".join(
        ["| field | what it would do | right beside `create pods` |", "|---|---|---|", *lines]
    )


def _other_right(field: GuardedField) -> str:
    right = next((r for r in field.rights("NAME") if r != MAKE_PODS), None)
    return f"`{right.words()}`" if right else ""


def _harmless() -> str:
    names = dict.fromkeys(_short(path) for path in HARMLESS)
    return ", ".join(f"`{name}`" for name in names) + "."


def _short(path: str) -> str:
    """Without `spec.`, and like things under one name."""
    short = path.removeprefix("spec.")
    for names, one in ((CONTAINER_LISTS, "container"), (PROBES, "probe"), (HOOKS, "hook")):
        for name in names:
            short = short.replace(f"{name}[].", f"{one}.").replace(f"{name}.", f"{one}.")
    return short


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
