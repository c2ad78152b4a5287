"""The name that was probably meant: for "did you mean" in messages, never to act upon."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 64
_TELLING = 4


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name within a slip or two of `word`, or the only one that it begins.

    Case alone never counts as a slip.
    """
    if len(word) > _LONGEST:
        return None
    allowed = 0 if len(word) < 3 else 1 if len(word) < 6 else 2
    names = list(known)
    near = (name for name in names if abs(len(name) - len(word)) <= allowed)
    ranked = sorted((distance(word.lower(), name.lower()), name) for name in near)
    if ranked and ranked[0][0] <= allowed:
        return ranked[0][1]
    begun = [name for name in names if name.lower().startswith(word.lower())]
    return begun[0] if len(begun) == 1 and len(word) >= _TELLING else None


def distance(one: str, other: str) -> int:
    """How many letters were added, lost, changed, or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]
