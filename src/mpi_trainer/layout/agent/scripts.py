"""The agent's scripts as files of a pod. Every pod of a role gets the same ones.

`hosts` names the workers, one a line: pod, address, and where names do not resolve also the IP
address and the port. A line that begins with a dot is what follows a pod's name in the address of
those below that have none. `settings` holds the bounds. Both are data and a job's own; no script is
ever changed, so all jobs of a version share them. What is for their readers stays here: comments
are a third of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Literal

from mpi_trainer.layout import package_files
from mpi_trainer.layout.agent.paths import FOLDER, NAMES
from mpi_trainer.layout.model import File, Host

_EVERYWHERE = ("prepare", "processes", "watch", "waiting", "places", "rank")
_ON_WORKERS = ("worker", "session")
_ON_LAUNCHERS = (
    "launch",
    "channels",
    "verdict",
    "summary",
    "quiet",
    "mpiexec",
    "streams",
    "ssh",
    "names",
)
_PYTHON = "sitecustomize.py"
_LINES = "lines"
_RELAY = "relay"
"""both without a suffix: ranks have the folder on their path, and may import such a module"""
_MODE = 0o555
"""of all, also of those that are only read: one mode is one word in every pod"""

HOSTS = f"{FOLDER}/hosts"
SETTINGS = f"{FOLDER}/settings"


def text(name: str) -> str:
    """The script of that name."""
    return everything()[name]


def files(role: Literal["launcher", "worker"], settings: str) -> tuple[File, ...]:
    names = (*_EVERYWHERE, *(_ON_LAUNCHERS if role == "launcher" else _ON_WORKERS))
    python = (_PYTHON, _RELAY, *((_LINES,) if role == "launcher" else ()))
    return (
        *(File(f"{FOLDER}/{name}", _MODE, text(name), shared=True) for name in (*names, *python)),
        File(SETTINGS, _MODE, settings),
    )


def names() -> tuple[File, ...]:
    """What a launcher needs in order to wait for its hosts' names, and no more."""
    return (File(NAMES, _MODE, text("names"), shared=True),)


@cache
def everything() -> Mapping[str, str]:
    """All scripts of this version, of every role, by name."""
    shell = (*_EVERYWHERE, *_ON_WORKERS, *_ON_LAUNCHERS)
    return {
        _PYTHON: _read(f"python/{_PYTHON}"),
        **{name: _read(f"python/{name}.py") for name in (_LINES, _RELAY)},
        **{name: _bare(_read(f"{name}.sh")) for name in shell},
    }


def hosts(workers: Iterable[Host]) -> File:
    return File(HOSTS, _MODE, "".join(_lines(workers)))


def _lines(workers: Iterable[Host]) -> Iterator[str]:
    last = ""
    for host in workers:
        domain = host.address.removeprefix(host.pod)
        if domain[:1] != ".":
            yield f"{host.pod} {host.address}\n"
            continue
        if domain != last:
            yield f"{domain}\n"
            last = domain
        yield f"{host.pod}\n"


def _read(name: str) -> str:
    return package_files.text(f"agent/{name}")


def _bare(script: str) -> str:
    """Without lines that are empty or a comment; the first says which shell it is for."""
    first, *rest = script.splitlines(keepends=True)
    return first + "".join(line for line in rest if line.strip() and line.lstrip()[0] != "#")
