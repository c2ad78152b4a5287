"""Open MPI's own messages about the end of ranks, each in one line: for people at a terminal.

They come in frames of dashes and say in ten lines what the verdict says in one. Only frames that
are known are folded, and only where somebody reads along: a file or a pipe gets every line.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

FRAME = "-" * 74
MOST_LINES = 24
_BEGINNINGS = (
    "MPI_ABORT was invoked on rank",
    *(f"{name} has exited due to process rank" for name in ("prterun", "mpirun", "mpiexec")),
    *(f"{name} noticed that process rank" for name in ("prterun", "mpirun", "mpiexec")),
    *(f"{name} detected that one or more processes" for name in ("prterun", "mpirun", "mpiexec")),
    "Primary job  terminated normally, but",
)


class _Line(Protocol):
    @property
    def pod(self) -> str: ...

    @property
    def rank(self) -> int | None: ...

    @property
    def stream(self) -> str: ...

    @property
    def text(self) -> str: ...


L = TypeVar("L", bound=_Line)


class MessageFolder(Generic[L]):
    """Lines in, lines out. What may be the beginning of a frame is held back until its next line;
    other lines do not wait for it."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, int | None], list[L]] = {}

    def feed(self, line: L) -> list[L]:
        """The lines that can be shown now."""
        key = (line.pod, line.stream, line.rank)
        held = [*self._held.pop(key, []), line]
        ready: list[L] = []
        frames = line.text == FRAME
        if len(held) == 1:
            ready, held = ([], held) if frames else (held, [])
        elif len(held) == 2 and frames:
            ready, held = held[:1], held[1:]  # the second may open a frame too
        elif len(held) > MOST_LINES or not held[1].text.startswith(_BEGINNINGS):
            ready, held = held, []
        elif frames:
            ready, held = [_folded(held)], []
        if held:
            self._held[key] = held
        return ready

    def rest(self) -> list[L]:
        """What is still held, at the end."""
        lines = [line for held in self._held.values() for line in held]
        self._held.clear()
        return lines


def _folded(frame: list[L]) -> L:
    said: L = frame[1]
    text = f"Open MPI: {said.text} … ({len(frame)} lines)"
    return msgspec.structs.replace(said, text=text)  # type: ignore[type-var]
