"""The bounds within which the agent calls something a failure, and their annotations.

A job changes one with `mpi-trainer.opendatahub.io/<name>-seconds`; 0 means never, but for `wait`.
What each bounds stands in `verdict.sh`. A value that is no number is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.kinds.annotations import BOUNDS, bound, seconds


class AgentSettings(msgspec.Struct, frozen=True):
    """One field for each of `BOUNDS`."""

    wait: int = 110
    lost: int = 20
    dead: int = 10
    stuck: int = 10
    start: int = 100

    def text(self) -> str:
        """Assignments for a shell."""
        return "".join(f"{name}_seconds={getattr(self, name)}\n" for name in BOUNDS)


def settings(annotations: Mapping[str, str]) -> AgentSettings:
    given = {name: seconds(annotations.get(bound(name), "")) for name in BOUNDS}
    return AgentSettings(**{name: value for name, value in given.items() if value is not None})
