"""The bounds within which the agent calls something a failure, and their annotations.

A job changes one with `mpi-trainer.opendatahub.io/<name>-seconds`; 0 means never, but for `wait`.
What each bounds stands in `verdict.sh`. A value that is no number is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.layout.agent.choice import DOMAIN

LONGEST = 7 * 24 * 3600


class Settings(msgspec.Struct, frozen=True):
    wait: int = 110
    lost: int = 20
    dead: int = 10
    stuck: int = 10
    start: int = 100

    def text(self) -> str:
        """Assignments for a shell."""
        return "".join(f"{name}_seconds={getattr(self, name)}\n" for name in NAMES)


NAMES = Settings.__struct_fields__


def annotation(name: str) -> str:
    return f"{DOMAIN}/{name}-seconds"


def settings(annotations: Mapping[str, str]) -> Settings:
    given = {name: _seconds(annotations.get(annotation(name), "")) for name in NAMES}
    return Settings(**{name: value for name, value in given.items() if value is not None})


def refused(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The annotations of ours whose value is no number of seconds."""
    named = (annotation(name) for name in NAMES)
    return tuple(n for n in named if n in annotations and _seconds(annotations[n]) is None)


def _seconds(text: str) -> int | None:
    plain = text.strip()
    if not (plain.isascii() and plain.isdecimal()) or len(plain) > len(str(LONGEST)):
        return None
    return min(int(plain), LONGEST)
