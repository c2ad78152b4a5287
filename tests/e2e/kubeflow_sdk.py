"""The public Kubeflow SDK, unmodified, in an environment of its own, and our runtimes for it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually
from tests.e2e.operator import MANIFESTS
from tools.cluster.paths import cache_root
from tools.cluster.report import environment
from tools.cluster.spec import Spec

LOCK = Path(__file__).parents[2] / "requirements" / "kubeflow.txt"
USER = Path(__file__).with_name("kubeflow_user.py")
UV = Path(sys.executable).with_name("uv")


class Sdk(msgspec.Struct, frozen=True):
    """Runs a user's scenario by the SDK's own interpreter."""

    python: Path

    def __call__(self, scenario: str, kubectl: Kubectl) -> tuple[dict[str, Any], str]:
        """What it found, and all that it printed before."""
        ended = subprocess.run(
            # -P: the folder of the script has modules with names of the standard library.
            [self.python, "-P", USER, scenario, kubectl.namespace],
            env=environment(kubectl.spec),
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
        printed, _, last = ended.stdout.rstrip().rpartition("\n")
        found: dict[str, Any] = json.loads(last)
        return found, printed


@pytest.fixture(scope="session")
def kubeflow_sdk() -> Sdk:
    """Installed once for every lock, from the package index, with hashes."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    place = cache_root() / f"kubeflow-sdk-{digest}"
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=cache_root()) as scratch:
            made = Path(scratch) / "venv"
            _uv("venv", "--quiet", "--relocatable", str(made))
            python = f"--python={made}/bin/python"
            _uv("pip", "install", "--quiet", python, "--require-hashes", "-r", str(LOCK))
            made.rename(place)
    return Sdk(place / "bin" / "python")


def _uv(*words: str) -> None:
    subprocess.run([UV, *words], check=True, timeout=600, env=dict(os.environ))


@pytest.fixture(scope="session")
def shipped_runtimes(
    operator: Controller, cluster: Spec, image: Callable[[str], str]
) -> tuple[str, ...]:
    """Our runtimes on the cluster, with the image of the first; their names."""
    image("mpi-openmpi")
    kubectl = Kubectl(cluster)
    served = ("get", "clustertrainingruntimes")
    eventually("runtimes are served", lambda: not kubectl.attempt(*served).returncode, 60)
    kubectl("apply", "-k", str(MANIFESTS / "runtimes"))
    return tuple(
        item["metadata"]["name"] for item in json.loads(kubectl(*served, "-o", "json"))["items"]
    )
