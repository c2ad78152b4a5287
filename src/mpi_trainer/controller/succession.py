"""Which job has a name, and which one had it before: a name may be used again at any time."""

from __future__ import annotations

from mpi_trainer.runtime.partial import Key


class Succession:
    def __init__(self) -> None:
        self._uids: dict[Key, str] = {}

    def replaced(self, key: Key, uid: str) -> str:
        """The uid of the job that is no more, which is to be forgotten; "" where there is none.

        `uid` is the present job's, "" where there is no job of that name.
        """
        before = self._uids.pop(key, "")
        if uid:
            self._uids[key] = uid
        return before if before != uid else ""
