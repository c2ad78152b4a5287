"""MIG-3: the documented commands put ours in the place of the public MPI operator.

What that operator left is made as it makes it (`test_takeover`); its Deployment, account, rights
and flags are those of the overlay. The real one is replaced in `tests/e2e/full/test_drop_in.py`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.api.accounts import Account
from tests.api.admin import JOBS, Admin, Object
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, kubelet, served, submit, until
from tests.api.running import Controller, job
from tests.api.test_takeover import begin, living, told
from tests.cluster import Kubectl, eventually
from tests.pages import ROOT, shell_blocks
from tools.cluster.report import environment
from tools.cluster.spec import Spec

__all__ = ["admin", "kubelet", "served"]

OPERATOR = "mpi-operator"
BACKUP = "mpijobs-backup.yaml"
RBAC = "rbac.authorization.k8s.io"
RIGHTS: list[Object] = [
    {"kind": "ClusterRole", "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    {
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": OPERATOR},
        "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": OPERATOR}],
    },
]


@pytest.fixture
def operator(served: Spec) -> Iterator[Kubectl]:
    """Namespace, rights and expired Lease of a public operator that has been stopped."""
    home = Kubectl(served, OPERATOR)
    renewed = datetime.now(UTC) - timedelta(minutes=2)
    lease = {
        "holderIdentity": "mpi-operator-6c9f_1",
        "leaseDurationSeconds": 2,  # 15 in truth, which would only be waited for
        "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    home.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR}},
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": OPERATOR},
            "spec": lease,
        },
        *({"apiVersion": f"{RBAC}/v1", "metadata": {"name": OPERATOR}, **one} for one in RIGHTS),
    )
    yield home
    home("delete", "namespace", OPERATOR, "--wait=false")


def take_its_place(spec: Spec, folder: Path) -> None:
    """Runs the documented commands as they stand; the backup goes to the folder."""
    block, _back = shell_blocks("docs/install.md", "In the place of the public MPI operator")
    assert BACKUP in block
    ended = subprocess.run(
        ["sh", "-euc", block.replace(BACKUP, str(folder / BACKUP))],
        cwd=ROOT,
        env=environment(spec),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def installed(home: Kubectl, folder: Path) -> Controller:
    """The controller with the account and the arguments of the overlay's Deployment."""
    deployed = home.get("deployment", OPERATOR)["spec"]["template"]["spec"]
    token = home("create", "token", deployed["serviceAccountName"]).strip()
    account = Account(home, OPERATOR, token).kubeconfig(folder)
    return Controller(account, *deployed["containers"][0]["args"])


def test_jobs_of_the_public_operator_go_on_under_the_drop_in_overlay(
    admin: Admin, kubelet: Kubelet, operator: Kubectl, tmp_path: Path
) -> None:
    """MIG-3: a running job keeps its pods and ends well, a finished one is not written to."""
    begin(admin, "Running")
    submit(admin, job(1, "finished"))
    ended = {"conditions": [told("Created", "True"), told("Succeeded", "True")]}
    admin.patch(f"{JOBS}/mpijobs/finished/status", {"status": ended})
    eventually("it runs", lambda: living(admin) is not None)
    before = {pod["metadata"]["uid"] for pod in admin.pods()}
    take_its_place(admin.spec, tmp_path)
    with installed(operator, tmp_path):
        eventually(
            "ours leads",
            lambda: "mpi-trainer" in operator.get("lease", OPERATOR)["spec"]["holderIdentity"],
        )
        launcher = living(admin)
        assert launcher is not None
        kubelet.exit(launcher)
        until(admin, "Succeeded")
    assert {pod["metadata"]["uid"] for pod in admin.pods()} == before
    assert admin.job("finished")["status"]["conditions"] == ended["conditions"]
    kept = yaml.safe_load((tmp_path / BACKUP).read_text())["items"]
    ours = (one for one in kept if one["metadata"]["namespace"] == admin.namespace)
    specs = {one["metadata"]["name"]: one["spec"] for one in ours}
    assert specs["pi"] == admin.job("pi")["spec"]
