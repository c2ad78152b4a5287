"""Who is measured: each controller as a host process with a certificate of its own.

The certificate's user tells the requests of one contestant from everybody else's in the audit
log. All are administrators and run with the same API server, one after the other, never two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import cost
from tools.cluster import kubeconfig, pki, processes
from tools.cluster.build import build
from tools.cluster.client import Client, wait_until
from tools.cluster.components import MPI_OPERATOR
from tools.cluster.errors import ClusterError
from tools.cluster.ports import is_free
from tools.cluster.spec import Spec

CLIENT: Final = "bench-client"
_HEALTH_PORT: Final = 8080
"""where the Go operator serves its health; it cannot be told another, and ends if it is taken"""
LOCK_NAMESPACE: Final = "mpi-operator"
_RAISED: Final = (
    "--kube-api-qps=1000",
    "--kube-api-burst=2000",
    "--threadiness=16",
    "--controller-queue-rate-limit=1000",
    "--controller-queue-burst=2000",
)


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """One controller with one set of flags."""

    name: str
    user: str
    flags: tuple[str, ...] = ()
    ours: bool = False
    once: bool = False
    """so slow, and so steady, that large scenes are measured a single time"""

    def argv(self, config: Path) -> list[str]:
        """How it is started."""
        if self.ours:
            module = "mpi_trainer.controller"
            return [sys.executable, "-m", module, f"--kubeconfig={config}", *self.flags]
        program = build([MPI_OPERATOR])[MPI_OPERATOR.name].bin / "mpi-operator"
        return [str(program), f"--kubeConfig={config}", *self.flags]


CONTESTANTS: Final = {
    contestant.name: contestant
    for contestant in (
        Contestant(name="go-default", user="bench-go-default", once=True),
        Contestant(name="go-raised", user="bench-go-raised", flags=_RAISED),
        Contestant(name="ours", user="bench-ours", flags=("--health-port=0",), ours=True),
    )
}


def admit(spec: Spec, users: list[str]) -> None:
    """Give users their certificates and kubeconfigs."""
    for user in users:
        pki.issue(spec.state / "pki", pki.Identity(user, user, "system:masters"))
        target = spec.state / f"{user}.kubeconfig"
        kubeconfig.write(target, spec.api_url, spec.state / "pki", user)


@contextmanager
def running(spec: Spec, contestant: Contestant) -> Iterator[int]:
    """The contestant's process for as long as the block runs; its pid."""
    _free_leases(spec)
    if not contestant.ours:
        wait_until(f"port {_HEALTH_PORT} is free", lambda: is_free(_HEALTH_PORT, ""), 300)
    argv = contestant.argv(spec.state / f"{contestant.user}.kubeconfig")
    pid = processes.start(spec.state, contestant.name, argv)
    cost.prefer(pid)
    try:
        yield pid
        if not processes.start_time(pid):
            log = spec.state / "log" / f"{contestant.name}.log"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise ClusterError(f"{contestant.name} ended by itself:\n{tail}")
    finally:
        processes.end([pid], grace_seconds=10)
        (spec.state / "pid" / contestant.name).unlink()


def _free_leases(spec: Spec) -> None:
    """A lease that the last contestant left would keep the next one waiting."""
    client = Client(spec)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{LOCK_NAMESPACE}/leases"
    for lease in client.get(leases)["items"]:
        client.delete(f"{leases}/{lease['metadata']['name']}")
