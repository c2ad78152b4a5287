"""The programs of Debian's package `prometheus`, unpacked and not installed: no service begins.

They follow Debian's current release, as all of its packages do. Where they cannot be had a test is
skipped with the reason, and under `CI=true` it fails instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from tools.cluster.lock import locked
from tools.cluster.paths import cache_root


def program(name: str) -> Path:
    """`prometheus` or `promtool`; fetched once, by one of the tests that run at the same time."""
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    folder = cache_root() / "prometheus"
    found = folder / "usr/bin" / name
    with locked(folder.with_name("prometheus.lock"), "fetch Debian's prometheus"):
        if not found.exists():
            _fetch(folder)
    return found


def _fetch(target: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        _none("there is no Debian package of Prometheus here")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        fetch = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "prometheus"]
        if subprocess.run(fetch, cwd=folder, check=False).returncode:
            _none("the Debian package of Prometheus cannot be fetched")
        (package,) = Path(folder).glob("prometheus_*.deb")
        unpacked = Path(folder, "unpacked")
        subprocess.run(["dpkg", "-x", str(package), str(unpacked)], check=True)
        shutil.move(unpacked, target)


def _none(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
