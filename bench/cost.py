"""What a program costs: its CPU time, its peak memory, and its requests by the audit log."""

from __future__ import annotations

import collections
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS


def prefer(pid: int) -> None:
    """Let a process and its session go before the machine's other work, where that is allowed.

    All parts of a measurement are preferred alike, so that they compete with each other alone.
    """
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text("-20")


def reset_peak(pid: int) -> None:
    """Let the kernel's memory of the process's peak begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """The process's largest resident size since `reset_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)


class Requests:
    """One user's requests, read from the API server's audit log as it grows."""

    def __init__(self, log: Path, user: str) -> None:
        self._file = log.open()
        self._file.seek(0, os.SEEK_END)
        self._user = user
        self.counts: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.last = time.monotonic()

    def read(self) -> None:
        """Take in what was written since the last time."""
        while True:
            place = self._file.tell()
            line = self._file.readline()
            if not line.endswith("\n"):
                self._file.seek(place)
                return
            self._count(json.loads(line))

    def total(self) -> int:
        """All requests but those for leases, which tick whether there is work or not."""
        return sum(n for what, n in self.counts.items() if not what.endswith(" leases"))

    def close(self) -> None:
        """Close the log."""
        self._file.close()

    def _count(self, event: dict[str, object]) -> None:
        user, about = event["user"], event.get("objectRef") or {}
        assert isinstance(user, dict) and isinstance(about, dict)
        begun = event["verb"] == "watch" and event["stage"] != "ResponseStarted"
        if user["username"] != self._user or begun:
            return
        parts = (about.get("resource"), about.get("subresource"))
        what = f"{event['verb']} {'/'.join(part for part in parts if part)}"
        self.counts[what] += 1
        if not what.endswith(" leases"):
            self.last = time.monotonic()
        status = event.get("responseStatus") or {}
        assert isinstance(status, dict)
        if status.get("code", 200) >= 400:
            self.refused[f"{what} {status['code']}"] += 1
