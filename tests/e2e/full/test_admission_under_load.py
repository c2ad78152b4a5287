"""Webhook pods go one by one while fifty users a second are served (CTL-4)."""

from __future__ import annotations

import pytest

from tests.api.admin import Admin
from tests.api.admission.request_load import Crowd
from tests.cluster import Kubectl
from tests.e2e.test_install import HOME, cluster, commands, installed, run, waiting_job
from tools.cluster.spec import Spec

__all__ = ["cluster", "installed"]

MANY = 200
"""answers, on a machine that cannot keep the crowd's pace"""
SELECTOR = "--selector=app.kubernetes.io/component=webhook"


@pytest.mark.timeout(400, func_only=True)
def test_nobody_asks_in_vain_while_the_pods_of_admission_are_replaced(
    installed: Spec, namespace: Kubectl
) -> None:
    run(installed, commands("Admission"))
    admin = Admin(installed, namespace.namespace)
    try:
        steady = waiting_job("steady")
        steady["spec"]["runPolicy"]["suspend"] = True
        namespace.apply(steady)
        home = Kubectl(installed, HOME)
        pods = home("get", "pods", SELECTOR, "-o", "name").split()
        assert len(pods) == 2
        with Crowd(admin, "steady") as crowd:
            for pod in pods:
                home("delete", pod, seconds=120)
                status = ("rollout", "status", "deployment/mpi-trainer-webhook")
                home(*status, "--timeout=120s", seconds=130)
            pace = crowd.pace
        print(f"{len(crowd.seconds)} requests, {pace:.0f} a second")
        assert crowd.failures == []
        assert len(crowd.seconds) > MANY
    finally:
        admin.close()
        run(installed, commands("Admission", 1))
