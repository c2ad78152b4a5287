"""One run of the Go compiler, with its progress told and its cost measured."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from tools.cluster.errors import ClusterError
from tools.cluster.progress import say

_REPORT_SECONDS: Final = 30.0


class Figures(msgspec.Struct, frozen=True):
    """What a build took."""

    seconds: float
    cpu_seconds: float
    """user and system time of the compiler and everything that it started"""


def compiled(
    name: str, command: list[str], cwd: Path, env: Mapping[str, str], log: Path
) -> Figures:
    """Run a build to its end, telling from time to time how many packages are done."""
    say(name, "compile")
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            code, cpu = _ended(name, process, log)
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise ClusterError(f"{name} does not build:\n{tail}", "Run the command again: it resumes.")
    return Figures(round(time.monotonic() - started, 1), round(cpu, 1))


def _ended(name: str, process: subprocess.Popen[bytes], log: Path) -> tuple[int, float]:
    """Exit code and CPU time of the process; other builds may run beside it."""
    started = told = time.monotonic()
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage.ru_utime + usage.ru_stime
        now = time.monotonic()
        if now - told >= _REPORT_SECONDS:
            packages = log.read_bytes().count(b"\n")
            say(name, f"compile, {packages} packages, {now - started:.0f} s")
            told = now
        time.sleep(0.1)
