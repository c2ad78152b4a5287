"""Paths of this machine that pods must see, though they have a /tmp and a /run of their own (L-8).

People clone, build and keep environments below /tmp every day. Guarantee: the working directory,
the caller's Python with whatever it imports, its MPI, and what the command names are seen by every
pod at their own paths, wherever they lie. Danger: /tmp itself is shown to a job only that works
in it; what a program finds there by itself is the pod's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpi_trainer.local.pods.rootfs import HIDDEN, is_hidden

Pairs = Iterable[tuple[str, str]]


def shared_paths(
    cwd: str, env: Pairs, command: Iterable[str], more: Iterable[str]
) -> tuple[str, ...]:
    """Paths that exist and that pods would hide; the working directory always, and first."""
    wanted = (*_of_env(env), *_of_python(), *_of_command(command), *more)
    found = (path for path in wanted if path not in HIDDEN and _would_be_hidden(path))
    return tuple(dict.fromkeys((cwd, *found)))


def _would_be_hidden(path: str) -> bool:
    if not path.startswith("/"):
        return False
    try:
        real = str(Path(path).resolve(strict=True))
    except (OSError, RuntimeError):
        return False
    return real not in HIDDEN and (is_hidden(path) or is_hidden(real))


def _of_env(env: Pairs) -> Iterator[str]:
    for name, value in env:
        for path in value.split(":"):
            yield _installation(path) if name == "PATH" else path


def _of_python() -> Iterator[str]:
    """The environment, the Python that it was made from, and what is imported from elsewhere."""
    yield from (sys.prefix, sys.base_prefix, *sys.path)


def _of_command(words: Iterable[str]) -> Iterator[str]:
    """A program's neighbours too: it imports them."""
    for word in words:
        path = Path(word)
        if word.startswith("/") and "\0" not in word and len(word) < 4096:
            folder = str(path.parent)
            yield folder if path.is_file() and folder not in HIDDEN else word


def _installation(folder: str) -> str:
    """What belongs to the programs of a folder: `lib` lies beside `bin`."""
    above = folder.rstrip("/").rpartition("/")[0]
    return folder if above in HIDDEN or not folder.rstrip("/").endswith("/bin") else above
