"""Plain data as YAML that is pleasant to read.

Text of several lines stands as it is, a command on one line, and keys in the order they came in.
"""

from __future__ import annotations

from typing import Any

import yaml

WIDTH = 100


class _Readable(yaml.SafeDumper):
    """A dumper of its own, since representers are registered for a class."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    words = all(isinstance(item, str) and "\n" not in item for item in items)
    short = words and sum(len(item) + 2 for item in items) < WIDTH - 20
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Readable.add_representer(str, _text)
_Readable.add_representer(list, _list)


def written(data: Any) -> str:
    """The text without its last line end, which whoever prints it adds."""
    text = yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text.removesuffix("\n")
