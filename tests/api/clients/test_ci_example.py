"""The step for a CI system of examples/manifests/README.md, as it is, on a real API server (DOC-1).

Its jobs themselves run on real nodes in `tests/e2e/test_manifests.py`.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest

from tests.api.admin import Admin, Object
from tests.api.kubelet import Kubelet, is_launcher
from tests.api.lab import served
from tests.api.running import Controller
from tests.ci_step import JOBS, run_step
from tools.cluster.spec import Spec

__all__ = ["served"]


@pytest.mark.parametrize("failing", ["", "simple-mpijob"], ids=["all succeed", "one fails"])
def test_the_documented_step_ends_with_the_first_job_that_fails(
    failing: str, served: Spec, tmp_path: Path
) -> None:
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
        ended = run_step(served.kubeconfig, 200, tmp_path)
    admin.close()
    said = ended.stdout + ended.stderr
    assert ended.returncode == (1 if failing else 0), said
    made = re.findall(r"mpijob\.kubeflow\.org/(\S+) created at", ended.stdout)
    assert tuple(made) == (JOBS[: JOBS.index(failing) + 1] if failing else JOBS), said
    assert re.search(rf'namespace "{admin.namespace}" deleted', ended.stdout), said
