"""How a command becomes an MPI run (CTL-15).

A command that starts ranks by itself is left alone; any other is started once per slot. Only the
interfaces do this (CLI, SDK, dashboard), where it can be seen; a manifest is never rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

LAUNCHERS = frozenset(
    {
        "mpirun",
        "mpiexec",
        "mpiexec.hydra",
        "mpirun.openmpi",
        "mpirun.mpich",
        "mpiexec.openmpi",
        "mpiexec.mpich",
        "orterun",
        "prterun",
        "prun",
        "horovodrun",
        "deepspeed",
    }
)
SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})

# Words that only start another command: programs, and the shell's own; each with its options that
# take a word of their own.
_PREFIXES: dict[str, tuple[str, ...]] = {
    "env": ("-u", "-C"),
    "nice": ("-n",),
    "stdbuf": ("-i", "-o", "-e"),
    "time": ("-f", "-o"),
    "timeout": ("-k", "-s"),
    **dict.fromkeys(("nohup", "setsid", "command", "exec"), ()),
    **dict.fromkeys(("!", "if", "then", "elif", "else", "while", "until", "do"), ()),
}
_OPTION_SETTING_OR_TIME = re.compile(r"-.*|[A-Za-z_]\w*=.*|\d[\d.]*[smhd]?", re.DOTALL)
_SHELL_LINE_FOLLOWS = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_SHELL_OPTION_NAME_FOLLOWS = re.compile(r"[-+][A-Za-z]*[oO]|--rcfile|--init-file")
_QUOTED_OR_COMMENT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_BETWEEN_COMMANDS = re.compile(r"[;&|(){}`\n]+")


def starts_ranks(command: tuple[str, ...]) -> bool:
    """Whether the command is an MPI launcher, or a shell line that calls one.

    A shell line is read roughly: a launcher behind a variable (`$MPI -n 4 x`) is not found.
    """
    bare = _without_prefixes(command)
    if not bare:
        return False
    program = PurePosixPath(bare[0]).name
    if program in SHELLS:
        return any(map(starts_ranks, _simple_commands(_shell_line(bare[1:]))))
    return program in LAUNCHERS


def mpi_command(command: tuple[str, ...], ranks: int) -> tuple[str, ...]:
    """The command as an MPI run over `ranks` ranks; the same command where it is one already."""
    if starts_ranks(command):
        return command
    return ("mpirun", "-n", str(ranks), *command)


def _without_prefixes(command: tuple[str, ...]) -> tuple[str, ...]:
    """`env A=1 timeout 60 x` is `x`."""
    words = list(command)
    while words and (name := PurePosixPath(words[0]).name) in _PREFIXES:
        del words[0]
        while words and _OPTION_SETTING_OR_TIME.fullmatch(words[0]):
            del words[: 2 if words[0] in _PREFIXES[name] else 1]
    return tuple(words)


def _shell_line(arguments: tuple[str, ...]) -> str:
    """The line that a shell is given with -c; nothing where it runs a script."""
    words = iter(arguments)
    for word in words:
        if _SHELL_LINE_FOLLOWS.fullmatch(word):
            return next(words, "")
        if _SHELL_OPTION_NAME_FOLLOWS.fullmatch(word):
            next(words, "")
        elif not word.startswith(("-", "+")):
            break
    return ""


def _simple_commands(line: str) -> Iterator[tuple[str, ...]]:
    """The commands in a shell line, each behind `env` because settings may stand before it."""
    line = _QUOTED_OR_COMMENT.sub(_as_one_word, line.replace("\\\n", " "))
    for part in _BETWEEN_COMMANDS.split(line):
        yield ("env", *part.split())


def _as_one_word(quoted: re.Match[str]) -> str:
    return re.sub(r"[\s;&|(){}`]", "_", quoted[1] or quoted[2] or "")
