"""`-o`: the same facts as a table, JSON, YAML, names, or what paths pick out of them.

Whatever the format, standard output holds the data and nothing else.
"""

from __future__ import annotations

from typing import Any

import click
import msgspec

WORDS = ("json", "yaml", "wide", "name")
PATH = "jsonpath="
COLUMNS = "custom-columns="


class Column(msgspec.Struct, frozen=True):
    """One of `custom-columns`: its heading, and the path of its values in the object."""

    header: str
    path: str


class Format(msgspec.Struct, frozen=True):
    """`kind` is one of WORDS, `jsonpath`, `custom-columns`, or empty for the usual table."""

    kind: str = ""
    path: str = ""
    columns: tuple[Column, ...] = ()

    @property
    def structured(self) -> bool:
        return self.kind in ("json", "yaml", "jsonpath")

    @property
    def whole(self) -> bool:
        """Whether it shows what only whole objects have."""
        return self.structured or self.kind == "custom-columns"


class FormatType(click.ParamType[Format]):
    name = "FORMAT"

    def __init__(self, words: tuple[str, ...] = WORDS, *, columns: bool = False) -> None:
        self._words = words
        self._paths = (PATH, COLUMNS) if columns else (PATH,)

    def convert(self, value: Any, param: Any, ctx: Any) -> Format:
        if isinstance(value, Format):
            return value
        if value in self._words:
            return Format(value)
        if value.startswith(PATH):
            from mpi_trainer.cli.output.jsonpath import BadPath, Template

            try:
                Template(value.removeprefix(PATH))
            except BadPath as error:
                self.fail(str(error), param, ctx)
            return Format("jsonpath", value.removeprefix(PATH))
        if value.startswith(COLUMNS) and COLUMNS in self._paths:
            from mpi_trainer.cli.output import custom_columns
            from mpi_trainer.cli.output.jsonpath import BadPath

            try:
                columns = custom_columns.parse(value.removeprefix(COLUMNS))
            except BadPath as error:
                self.fail(str(error), param, ctx)
            return Format("custom-columns", columns=columns)
        more = {PATH: "jsonpath=EXPRESSION", COLUMNS: "custom-columns=HEADER:PATH,..."}
        choices = ", ".join([*self._words, *(more[path] for path in self._paths)])
        raise click.BadParameter(f"{value!r} is not one of {choices}", ctx, param)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        words = (*self._words, *self._paths)
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def rendered(data: Any, form: Format) -> str:
    """Plain data (dicts, lists, text, numbers) as JSON, YAML, or what the path leads to."""
    if form.kind == "jsonpath":
        from mpi_trainer.cli.output.jsonpath import Template

        return Template(form.path).filled(data)
    if form.kind == "yaml":
        from mpi_trainer.api.yaml.written import dumped

        return dumped(data).rstrip()
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
