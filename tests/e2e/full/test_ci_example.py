"""The step for a CI system of examples/manifests/README.md, as it is, on real nodes (DOC-1)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.api.running import Controller
from tests.ci_step import JOBS, run_step
from tests.cluster import Kubectl, eventually
from tools.cluster.spec import Spec

pytestmark = pytest.mark.timeout(600, func_only=True)


def test_the_documented_step_runs_and_leaves_nothing(
    operator: Controller, cluster: Spec, image: Callable[[str], str]
) -> None:
    for directory in ("mpi-openmpi", "mpi-intel"):
        image(directory)
    kubectl = Kubectl(cluster)
    ended = run_step(cluster.kubeconfig, 500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for name in JOBS:
        assert f"mpijob.kubeflow.org/{name} created" in ended.stdout
    made = re.search(r"namespace/(mpi-check-\d+) created", ended.stdout)
    assert made is not None
    gone = ("get", "namespace", made[1])
    eventually("it is gone", lambda: kubectl.attempt(*gone).returncode != 0, 120)
