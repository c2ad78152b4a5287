"""The step for a CI system of examples/manifests/README.md, as it is, on a real API server (DOC-1).

Its jobs themselves run on real nodes in `tests/e2e/test_manifests.py`.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.api.admin import Admin, Object
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import served
from tests.api.odh import ODH
from tests.api.running import Controller
from tests.pages import ROOT
from tools.cluster.spec import Spec

__all__ = ["served"]

FOLDER = ROOT / "examples/manifests"
JOBS = ("simple-mpijob", "intel-mpi-job", "network-policy-restricted")


@pytest.mark.parametrize("failing", ["", "simple-mpijob"], ids=["all succeed", "one fails"])
def test_the_documented_step_ends_with_the_first_job_that_fails(
    failing: str, served: Spec, tmp_path: Path
) -> None:
    page = (FOLDER / "README.md").read_text()
    (text,) = re.findall(r"```yaml\n(steps:\n.*?)```", page, re.DOTALL)
    (step,) = yaml.safe_load(text)["steps"]
    now = str(secrets.randbelow(10**9))
    admin = Admin(served, f"mpi-check-{now}")
    date = tmp_path / "date"
    date.write_text(f"#!/bin/sh\necho {now}\n")
    date.chmod(0o755)

    def finish(pod: Object) -> int | None:
        job = pod["metadata"]["labels"]["training.kubeflow.org/job-name"]
        if not is_launcher(pod):
            return None
        return 127 if job == failing else 0  # which is not tried again

    with Kubelet(admin) as kubelet, Controller.alone(served.kubeconfig, admin.namespace):
        kubelet.finish = finish
        ended = subprocess.run(
            ["sh", "-c", step["run"]],
            cwd=FOLDER,
            env={
                **os.environ,
                "KUBECONFIG": str(served.kubeconfig),
                "PATH": f"{tmp_path}:{ODH.parent}:{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    admin.close()
    said = ended.stdout + ended.stderr
    assert ended.returncode == (1 if failing else 0), said
    made = re.findall(r"mpijob\.kubeflow\.org/(\S+) created at", ended.stdout)
    assert tuple(made) == (JOBS[: JOBS.index(failing) + 1] if failing else JOBS), said
    assert re.search(rf'namespace "{admin.namespace}" deleted', ended.stdout), said
