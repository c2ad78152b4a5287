"""Cuts a stream of bytes into lines, of any length, without copying a long one again and again."""

from __future__ import annotations


class Lines:
    """Feed it chunks; it gives whole lines without their ends and keeps the beginning of one."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        if b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        if self._parts:
            chunk = b"".join((*self._parts, chunk))
            self._parts.clear()
        lines = chunk.split(b"\n")
        if last := lines.pop():
            self._parts.append(last)
        return lines

    def rest(self) -> bytes:
        """What came after the last line end."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return rest
