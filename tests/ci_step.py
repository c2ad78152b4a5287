"""The step for a CI system of examples/manifests/README.md, as a CI system runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.pages import ROOT

FOLDER = ROOT / "examples/manifests"
JOBS = ("simple-mpijob", "intel-mpi-job", "network-policy-restricted")


def run_step(kubeconfig: Path, seconds: float, *programs: Path) -> subprocess.CompletedProcess[str]:
    """`programs` are folders whose programs go before those of the machine."""
    page = (FOLDER / "README.md").read_text()
    (text,) = re.findall(r"```yaml\n(steps:\n.*?)```", page, re.DOTALL)
    (step,) = yaml.safe_load(text)["steps"]
    first = ":".join(map(str, (*programs, Path(sys.executable).parent)))
    return subprocess.run(
        ["sh", "-c", step["run"]],
        cwd=FOLDER,
        env={
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "PATH": f"{first}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
