"""Closed networks: policies that the controller makes, and a real network enforces."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mpi_trainer.api.kinds.annotations import NETWORK_POLICY
from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.manifests import pod
from tests.e2e.operator import submit, waiting_job

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 2222), 3)"

pytestmark = pytest.mark.timeout(400, func_only=True)


def connects(kubectl: Kubectl, source: str, address: str) -> bool:
    answer = kubectl.run_in(source, "python3", "-c", CONNECT, address)
    assert answer.returncode == 0 or "Traceback" in answer.stderr, answer.stderr
    return answer.returncode == 0


def test_nobody_but_the_jobs_own_pods_reaches_them_and_no_worker_the_launchers_ssh_port(
    restricted_home: Kubectl, image: Callable[[str], str]
) -> None:
    """CTL-6, AC-13."""
    reference = image("mpi-openmpi")
    other = Kubectl(restricted_home.spec, f"{restricted_home.namespace}-other")
    other.apply(restricted(other.namespace))
    try:
        closed = waiting_job(
            "closed",
            reference,
            metadata={"annotations": {NETWORK_POLICY: "restricted"}},
        )
        idle = ["sleep", "100000"]
        near, far = pod("near", reference, 1, idle), pod("far", reference, 2, idle)
        job = submit(restricted_home, closed, near)
        other.apply(far)
        job.until("Running", 300)
        restricted_home.wait("--for=condition=Ready", "pod/near")
        other.wait("--for=condition=Ready", "pod/far")
        (launcher,), (first, second) = job.pods("launcher"), job.pods("worker")
        name = first["metadata"]["name"]
        # What listens where an sshd would, since a launcher has none.
        listens = ("sh", "-c", "python3 -m http.server 2222 >/dev/null 2>&1 &")
        restricted_home.run_in(launcher["metadata"]["name"], *listens)
        worker, entry = second["status"]["podIP"], launcher["status"]["podIP"]

        def reached() -> dict[str, bool]:
            return {
                "worker to worker": connects(restricted_home, name, worker),
                "worker to launcher": connects(restricted_home, name, entry),
                "pod of the namespace": connects(restricted_home, "near", worker),
                "pod of another": connects(other, "far", worker),
            }

        shut = dict.fromkeys(reached(), False) | {"worker to worker": True}
        eventually("only workers reach workers", lambda: reached() == shut)
        restricted_home("annotate", "mpijob", "closed", f"{NETWORK_POLICY}=none", "--overwrite")
        eventually("without the policies everybody does", lambda: all(reached().values()))
        job.let_go()
        job.until("Succeeded")
    finally:
        restricted_home("delete", "pod", "near", "--wait=false")
        other("delete", "namespace", other.namespace, "--wait=false")
