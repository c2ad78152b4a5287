"""Which files of a folder do not travel with a job: `.odhignore`, written as `.gitignore` is. Pure.

A line is a pattern: `*`, `?`, `[a-z]` within a name, `**` for any folders; with a `/` in it (not
at its end) it counts from the folder itself, else at any depth; a `/` at its end means folders
only; `!` takes back; the last line that fits decides. Without a line about them, what no job
needs or what may hold secrets stays at home too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

FILE: Final = ".odhignore"
ALWAYS: Final = (
    *(".git", ".hg", ".svn", "__pycache__", "*.pyc", ".ipynb_checkpoints", ".venv", "venv"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", "node_modules", FILE),
    *(".env", ".netrc", ".ssh", ".kube", ".aws", ".docker", "id_rsa", "id_ed25519", "*.pem"),
)


class _Rule(msgspec.Struct, frozen=True):
    pattern: re.Pattern[str]
    folders_only: bool
    keeps: bool


class Ignored(msgspec.Struct, frozen=True):
    rules: tuple[_Rule, ...]

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether this path, relative and with `/`, stays at home."""
        for rule in reversed(self.rules):
            if (folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return not rule.keeps
        return False


def ignored(lines: Iterable[str]) -> Ignored:
    return Ignored(tuple(_rule(line) for line in (*ALWAYS, *lines) if _says_something(line)))


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _rule(line: str) -> _Rule:
    text = line.rstrip()
    keeps = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    pattern = _translated(text.lstrip("/"))
    return _Rule(
        re.compile(pattern if anchored else f"(?:.*/)?{pattern}", re.DOTALL), folders_only, keeps
    )


def _translated(glob: str) -> str:
    made, rest = "", glob
    while rest:
        for glob_part, expression in (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*")):
            if rest.startswith(glob_part):
                made, rest = made + expression, rest[len(glob_part) :]
                break
        else:
            length, expression = _one(rest)
            made, rest = made + expression, rest[length:]
    return made


def _one(rest: str) -> tuple[int, str]:
    """The first character of the pattern, or its first `[...]`, as a regular expression."""
    if rest[0] == "?":
        return 1, "[^/]"
    end = rest.find("]", 2) if rest[0] == "[" else -1
    if end > 0:
        inner = rest[1:end].replace("\\", "\\\\").replace("[", "\\[")
        inner = f"^{inner[1:]}" if inner[0] == "!" else inner
        return end + 1, f"[{inner}]"
    return 1, re.escape(rest[0])
