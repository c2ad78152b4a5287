"""What every part of fetching speaks of: settings, items, sources and errors. Pure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol

import msgspec

Role = Literal["dataset", "model"]
MOST_FILES: Final = 200_000
MOST_LISTED: Final = 10 * MOST_FILES
"""files of a listing, most of which the patterns leave out"""
LONGEST_PATH: Final = 1024
_LONGEST_NAME: Final = 255
OURS: Final = ".mpi-trainer-"
"""what names of our own begin with; nothing that is fetched may have such a name"""

SUMS: Final = "SHA256SUMS"
"""the file with checksums of those beside it"""


class FetchError(Exception):
    """What went wrong, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Interrupted(Exception):
    """It was asked to stop; what it has is kept."""


class TemporaryFault(Exception):
    """Of the network or the server: the same again may work."""


class Checksum(msgspec.Struct, frozen=True):
    """`git` is the SHA-1 that git gives a file's content."""

    algorithm: Literal["sha256", "git"]
    value: str


class Item(msgspec.Struct, frozen=True):
    """One file. `version` changes with its content; `ranges`: parts of it can be asked for.

    A size of None: the server does not say it.
    """

    path: str
    size: int | None
    version: str = ""
    checksum: Checksum | None = None
    ranges: bool = True


Pieces = Generator[bytes, None, None]


class Source(Protocol):
    """Where files come from. `read` may be called by many threads at once."""

    def items(self) -> Iterable[Item]:
        """All of them. Raises FetchError or TemporaryFault."""

    def read(self, item: Item, start: int, end: int | None) -> Pieces:
        """Its bytes from `start` up to `end`, in pieces of bounded size.

        Raises FetchError where the file is not the one that was listed, and TemporaryFault.
        """

    def close(self) -> None:
        """Ends its connections."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What to fetch, from where, to where. `given` are the variables that a source reads itself:
    addresses and credentials, which are never printed."""

    role: Role
    uri: str
    target: str
    given: Mapping[str, str]
    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    sha256: str = ""
    threads: int = 8

    @property
    def shown(self) -> str:
        """The address without its query, which may be a signature."""
        return self.uri.partition("?")[0]

    def wants(self, path: str) -> bool:
        """As the patterns say: any of `allow`, where there are any, and none of `ignore`."""
        if self.allow and not any(fnmatchcase(path, one) for one in self.allow):
            return False
        return not self.ignores(path)

    def ignores(self, path: str) -> bool:
        return any(fnmatchcase(path, one) for one in self.ignore)

    def lists(self, path: str) -> bool:
        """What is wanted, and the file that says whether it is whole."""
        return path == SUMS or self.wants(path)

    def ignores_all_in(self, folder: str) -> bool:
        """Whether a pattern leaves out whatever is there, such as `folder/*`."""
        return any(one.endswith("*") and fnmatchcase(f"{folder}/", one) for one in self.ignore)


def checked(
    items: Iterable[Item], uri: str, wants: Callable[[str], bool] = lambda path: True
) -> list[Item]:
    """Those that are wanted in the order of their paths; raises FetchError for what cannot be kept
    as files. What is not wanted may have any name."""
    found: dict[str, Item] = {}
    for n, item in enumerate(items):
        if n == MOST_LISTED:
            raise FetchError(f"{uri} lists more than {MOST_LISTED} files", "Name a folder in it.")
        if not wants(item.path):
            continue
        why = path_fault(item.path)
        if why:
            raise FetchError(
                f"{uri} has a file named {item.path!r:.200}, which {why}",
                "Rename it there, or leave it out with IGNORE_PATTERNS.",
            )
        if item.path in found:
            raise FetchError(
                f"{uri} lists {item.path!r:.200} twice", "Ask whoever runs the server why."
            )
        found[item.path] = item
        if len(found) > MOST_FILES:
            raise FetchError(
                f"{uri} has more than {MOST_FILES} files",
                "Name a folder in it, narrow it with ALLOW_PATTERNS, or pack it into archives.",
            )
    for path in _parents(found):
        if found[path].size:
            raise FetchError(
                f"{uri} has both a file {path!r:.200} and files in a folder of that name",
                "Rename one of them there, or leave it out with IGNORE_PATTERNS.",
            )
        del found[path]  # how tools for S3 keep a folder: as an empty object of its name
    return [found[path] for path in sorted(found)]


def _parents(found: Mapping[str, Item]) -> set[str]:
    """Those that are also folders of others."""
    parents = set()
    for path in found:
        parent = path.rpartition("/")[0]
        while parent:
            if parent in found:
                parents.add(parent)
            parent = parent.rpartition("/")[0]
    return parents


def path_fault(path: str) -> str:
    """Why it cannot be a file within a folder; empty where it can."""
    names = path.split("/")
    if len(path.encode(errors="replace")) > LONGEST_PATH:
        return f"has more than {LONGEST_PATH} bytes"
    if any(name in ("", ".", "..") for name in names):
        return "is no path within a folder"
    if any(len(name.encode(errors="replace")) > _LONGEST_NAME for name in names):
        return f"has a part of more than {_LONGEST_NAME} bytes"
    if not path.isprintable() or "\\" in path:
        return "has characters that no file should have in its name"
    if any(name.startswith(OURS) for name in names):
        return f"begins like our own files, with {OURS}"
    return ""
