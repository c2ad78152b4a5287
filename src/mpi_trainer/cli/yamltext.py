"""Plain data as YAML that is pleasant to read: text of several lines as it is, keys in order."""

from __future__ import annotations

from typing import Any

import yaml


class _Readable(yaml.SafeDumper):
    """A dumper of its own, since representers are registered for a class."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.rstrip("\n") or text.endswith("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _text)


def written(data: Any) -> str:
    return yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=100).rstrip()
