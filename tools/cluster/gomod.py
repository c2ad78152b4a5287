"""go.mod and go.sum of a module that was written to be built inside its own repository.

Published modules carry `replace … => ../sibling` lines and `v0.0.0` requirements that mean
nothing outside that repository. These pure functions turn them into exact versions; the
hashes of what they now name come from the committed `sums/` files, never from the network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LOCAL = re.compile(r"^(?:replace\s+)?\S+(?:\s+v\S+)?\s+=>\s+\.{1,2}/\S*\s*$")
_ZERO = re.compile(r"^(\s*(?:require\s+)?\S+) v0\.0\.0(?=\s|$)")
_REPLACED = re.compile(r"^\s*(?:replace\s+)?(\S+)(?:\s+v\S+)?\s+=>")
_REQUIRED = re.compile(r"^(\s*(?:require\s+)?)(\S+) (v\d+\.\d+\.\d+)((?:\s+//.*)?)$")


def released_gomod(text: str, zero_version: str, replaces: Mapping[str, str]) -> str:
    """The go.mod without local replacements, `v0.0.0` set, and our own replacements added, which
    win over its own."""
    lines = [line for line in text.splitlines() if not _LOCAL.match(line.strip())]
    if zero_version:
        lines = [_ZERO.sub(rf"\1 {zero_version}", line) for line in lines]
    lines = [_raised(line, replaces) for line in lines if _replaced(line) not in replaces]
    lines += [f"replace {module} => {module} {version}" for module, version in replaces.items()]
    return "\n".join(lines) + "\n"


def _replaced(line: str) -> str:
    found = _REPLACED.match(line)
    return found[1] if found else ""


def _raised(line: str, replaces: Mapping[str, str]) -> str:
    """A requirement, at no lower version than that which takes its place: modules of one release
    require each other at it, and Go wants go.mod to say so."""
    found = _REQUIRED.match(line)
    if found is None or found[2] not in replaces:
        return line
    before, module, version, comment = found.groups()
    return f"{before}{module} {max(version, replaces[module], key=_numbers)}{comment}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.removeprefix("v").partition("-")[0].split("."))


def merged_gosum(text: str, extra: str) -> str:
    """Both lists of hashes as one, each line once. A module with two hashes is an error."""
    lines = sorted({line for line in (text + "\n" + extra).splitlines() if line.strip()})
    known: dict[str, str] = {}
    for line in lines:
        key, _, value = line.rpartition(" ")
        if known.setdefault(key, value) != value:
            raise ValueError(f"go.sum: {key}: two different hashes; remove the wrong one")
    return "\n".join(lines) + "\n"
