"""Plain data as YAML, keys in the order they came in.

Guarantee: kubectl and we read what was written. PyYAML alone leaves text plain that they take for
a boolean or a number (`y`, `0o7`).
"""

from __future__ import annotations

from typing import Any

import yaml

from mpi_trainer.api.yaml import scalars

WIDTH = 100


class _Quoting(yaml.SafeDumper):
    """A dumper of its own, since representers are registered for a class."""


class _Readable(_Quoting):
    """Text of several lines stands as it is, and a command on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else _quotes(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_quotes(text))


def _quotes(text: str) -> str | None:
    try:
        return None if scalars.plain(text) == text else "'"
    except ValueError:
        return "'"


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    words = all(isinstance(item, str) and "\n" not in item for item in items)
    short = words and sum(len(item) + 2 for item in items) < WIDTH - 20
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Quoting.add_representer(str, _quoted)
_Readable.add_representer(str, _text)
_Readable.add_representer(list, _list)


def written(data: Any) -> str:
    """What is pleasant to read, without its last line end, which whoever prints it adds."""
    text = yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text.removesuffix("\n")


def dumped(data: Any) -> str:
    """The plain form."""
    text: str = yaml.dump(data, Dumper=_Quoting, sort_keys=False, allow_unicode=True)
    return text
