"""`-o`: the same facts as a table, JSON, YAML, names, or what a jsonpath picks out of them.

Whatever the format, standard output holds the data and nothing else.
"""

from __future__ import annotations

from typing import Any

import click
import msgspec

WORDS = ("json", "yaml", "wide", "name")
PATH = "jsonpath="


class Format(msgspec.Struct, frozen=True):
    """`kind` is one of WORDS, `jsonpath`, or empty for the usual table."""

    kind: str = ""
    path: str = ""

    @property
    def structured(self) -> bool:
        return self.kind in ("json", "yaml", "jsonpath")


class FormatType(click.ParamType[Format]):
    name = "FORMAT"

    def __init__(self, words: tuple[str, ...] = WORDS) -> None:
        self._words = words

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
        choices = ", ".join([*self._words, "jsonpath=EXPRESSION"])
        raise click.BadParameter(f"{value!r} is not one of {choices}", ctx, param)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        from click.shell_completion import CompletionItem

        words = (*self._words, PATH)
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def rendered(data: Any, form: Format) -> str:
    """Plain data (dicts, lists, text, numbers) as JSON, YAML, or what the path leads to."""
    if form.kind == "jsonpath":
        from mpi_trainer.cli.output.jsonpath import Template

        return Template(form.path).filled(data)
    if form.kind == "yaml":
        import yaml

        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True).rstrip()
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
