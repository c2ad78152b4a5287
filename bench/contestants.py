"""Who is measured: each controller as a host process with a service account of its own.

All run with the same API server, one after the other, never two. `ours` puts the agent into every
pod, as users get it; `ours-agent-off` makes the pods that the Go operator makes, so that the two
controllers alone are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import cost
from bench.accounts import HOME, OURS, Account
from mpi_trainer.api.kinds.annotations import AGENT, bound
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
_RAISED: Final = (
    "--kube-api-qps=1000",
    "--kube-api-burst=2000",
    "--threadiness=16",
    "--controller-queue-rate-limit=1000",
    "--controller-queue-burst=2000",
)


_OURS: Final = ("--health-port=0",)


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """One controller with one set of flags."""

    name: str
    flags: tuple[str, ...] = ()
    ours: bool = False
    wishes: Mapping[str, str] = {}
    """annotations of its jobs"""
    once: bool = False
    """so slow, and so steady, that large scenes are measured a single time"""

    def account(self) -> Account:
        """It needs the Go operator's source, for its manifests."""
        name = f"bench-{self.name}"
        if self.ours:
            return Account(name, OURS)
        source = build([MPI_OPERATOR])[MPI_OPERATOR.name].source
        return Account(name, (source / "manifests/base/cluster-role.yaml",), "mpi-operator")

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
        Contestant(name="go-default", once=True),
        Contestant(name="go-raised", flags=_RAISED),
        Contestant(name="ours", flags=_OURS, ours=True),
        Contestant(
            name="ours-agent-off", flags=_OURS, ours=True, wishes={AGENT: "off", bound("wait"): "0"}
        ),
    )
}


def admit(spec: Spec, users: list[str]) -> None:
    """Give users certificates and kubeconfigs as administrators; not for contestants."""
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
    argv = contestant.argv(contestant.account().kubeconfig(spec))
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
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"
    for lease in client.get(leases)["items"]:
        client.delete(f"{leases}/{lease['metadata']['name']}")
