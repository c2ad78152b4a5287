"""The step for a CI system of examples/manifests/README.md, as it is, on real nodes (DOC-1)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually
from tests.pages import ROOT
from tools.cluster.spec import Spec

FOLDER = ROOT / "examples/manifests"

pytestmark = pytest.mark.timeout(600, func_only=True)


def test_the_documented_step_runs_and_leaves_nothing(
    operator: Controller, cluster: Spec, image: Callable[[str], str]
) -> None:
    for directory in ("mpi-openmpi", "mpi-intel"):
        image(directory)
    (text,) = re.findall(
        r"```yaml\n(steps:\n.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL
    )
    (step,) = yaml.safe_load(text)["steps"]
    kubectl = Kubectl(cluster)
    ended = subprocess.run(
        ["sh", "-c", step["run"]],
        cwd=FOLDER,
        env={
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for name in ("simple-mpijob", "intel-mpi-job", "network-policy-restricted"):
        assert f"mpijob.kubeflow.org/{name} created" in ended.stdout
    made = re.search(r"namespace/(mpi-check-\d+) created", ended.stdout)
    assert made is not None
    gone = ("get", "namespace", made[1])
    eventually("it is gone", lambda: kubectl.attempt(*gone).returncode != 0, 120)
