"""P-7, C-7: what a finished job leaves in etcd, as the API server has stored it."""

from __future__ import annotations

import pytest

from bench.stored import grown, lasting, stored
from tests.api.admin import Admin
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, controller, kubelet, served, submit, until
from tests.api.running import job
from tests.cluster import eventually

__all__ = ["admin", "controller", "kubelet", "served"]

MOST = 25_000
"""bytes for two workers, 24,373 on an idle machine, 234 more where pods were seen late; the public
operator's job leaves 19,900 in the same place"""


@pytest.mark.usefixtures("controller")
def test_a_finished_job_leaves_little_more_than_the_public_operator_s(
    admin: Admin, kubelet: Kubelet
) -> None:
    """The launcher's pod says no more who set its fields; scripts, which go, do not count."""
    before = stored(admin.spec, admin.namespace)
    submit(admin, job(2))
    until(admin, "Running")
    kubelet.exit(admin.pods("launcher")[0])
    until(admin, "Succeeded")
    (launcher,) = admin.pods("launcher")
    path = f"api/v1/pods/{launcher['metadata']['name']}"

    def let_go() -> bool:
        found = admin.get(path)
        return found is not None and "managedFields" not in found["metadata"]

    eventually("it is let go", let_go)
    left = grown(stored(admin.spec, admin.namespace), before)
    assert lasting(left) < MOST, left
