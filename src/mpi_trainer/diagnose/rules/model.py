"""What a rule is: a text that programs print, and the cause that it shows. Pure.

Every rule has a literal that is looked for before its pattern, and examples, which are its tests.
Danger: patterns run over text that users write. A quantifier has a bound and no two of them can
match the same text, so that each pattern takes linear time (`tests/unit/diagnose/test_rules.py`).
"""

from __future__ import annotations

from typing import Final

import msgspec

HOST: Final = r"(?P<host>[A-Za-z0-9][-A-Za-z0-9_.]{0,252})"
RANK: Final = r"(?P<rank>\d{1,7})"
SIGNAL: Final = r"(?P<signal>\d{1,2})"

# How much a text says about the cause; the greatest wins, then what came first.
PROOF: Final = 95  # Kubernetes, the kernel or the agent says so
STARTUP: Final = 90  # nothing could start, and this is why
SPECIFIC: Final = 85  # the program names what it lacks
EXCEPTION: Final = 75  # the program's own traceback
MPI_ERROR: Final = 70  # an MPI call that failed
CRASH: Final = 66  # last words of a process that ends by a signal
SIGNALLED: Final = 60  # a rank ended by a signal
KILLED: Final = 59  # by one that MPI itself also sends
LOST: Final = 58  # a worker, or its daemon, is gone
ABORTED: Final = 55  # a rank ended all others
EXITED: Final = 50  # a rank left with a code
FOLLOWS: Final = 40  # what other ranks say when one is gone
HINT: Final = 28  # nothing but that something is gone

WARNED: Final = (
    "UserWarning: ",
    "RuntimeWarning: ",
    "FutureWarning: ",
    "DeprecationWarning: ",
    "ResourceWarning: ",
    "ImportWarning: ",
    "failed call to cuInit",
    "thrown while requesting",
    "Retrying (",
    "Retrying in ",
    "retrying in ",
    "Will retry",
    "will retry",
)
"""Texts of lines after which a program goes on: what they show weighs `FOLLOWS` at most."""

BAD_TERMINATION: Final = "BadTermination"
"""Not a cause: the signal or exit code that follows says which one it is."""


class Cause(msgspec.Struct, frozen=True):
    """An entry of the catalogue. `broader` are causes of which this is a kind."""

    name: str
    title: str
    why: str
    remedy: str
    broader: tuple[str, ...] = ()


class Rule(msgspec.Struct, frozen=True):
    """A line with `needs` that `pattern` finds something in shows `cause`.

    Groups of a pattern: host, rank, signal, code. `despite_success`: it is a failure even where
    mpirun leaves with 0. `unless`: literals of lines that are harmless. `instead`: the other cause
    that the same words can mean. `of_others`: the rank that writes it is not the one to blame.
    """

    cause: str
    weight: int
    needs: str
    pattern: str = ""
    examples: tuple[str, ...] = ()
    despite_success: bool = False
    unless: tuple[str, ...] = ()
    instead: str = ""
    of_others: bool = False


class Detail(msgspec.Struct, frozen=True):
    """A line soon after a rule's that names the host, rank, signal or exit code of `of`."""

    of: str
    needs: str
    pattern: str
    example: str


def said(cause: str, weight: int, *texts: str, despite_success: bool = False) -> tuple[Rule, ...]:
    """Rules for texts that are enough by themselves: each is its own example."""
    return tuple(
        Rule(cause, weight, text, "", (text,), despite_success=despite_success) for text in texts
    )
