"""What a cluster is: its name, profile and add-ons, as one frozen value kept on disk.

The spec is written before anything is started, so `down` knows what to look for even when `up`
was killed after its first step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from tools.cluster import components as c
from tools.cluster.addresses import Addresses
from tools.cluster.errors import ClusterError
from tools.cluster.paths import RUN, clusters_root

Profile = Literal["api", "kwok", "full"]

PROFILES: Final = ("api", "kwok", "full")
GANG_SCHEDULERS: Final = ("coscheduling", "volcano")
ADDONS: Final = (
    *("dns", "jobset", "kueue", "netpol", "kwok", "scc", "metrics-server"),
    *GANG_SCHEDULERS,
)
PEERS: Final = ("mpi-operator", "trainer")
"""the Go controllers that serve the same APIs as ours, for comparison only"""
_NEEDS_NODES: Final = frozenset(
    {"dns", "jobset", "kueue", "netpol", "metrics-server", *GANG_SCHEDULERS, *PEERS}
)
_ADDON_COMPONENTS: Final = {
    "dns": c.COREDNS,
    "jobset": c.JOBSET,
    "kueue": c.KUEUE,
    "netpol": c.KUBE_ROUTER,
    "kwok": c.KWOK,
    "metrics-server": c.METRICS_SERVER,
    "coscheduling": c.COSCHEDULING,
    "volcano": c.VOLCANO,
    "mpi-operator": c.MPI_OPERATOR,
    "trainer": c.TRAINER,
}


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster."""

    name: str = "dev"
    profile: Profile = "full"
    addons: tuple[str, ...] = ()
    nodes: int = 3
    fake_nodes: int = 0
    audit: bool = False
    audit_users: tuple[str, ...] = ()
    """whose requests the audit log holds; everybody's if nobody is named"""
    oldest: bool = False
    """the oldest API server that we support, in place of the newest"""
    slot: int = 0
    programs: dict[str, str] = {}
    """component -> directory of its built programs"""

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.slot)

    @property
    def real_nodes(self) -> int:
        return self.nodes if self.profile == "full" else 0

    @property
    def state(self) -> Path:
        return clusters_root() / self.name

    @property
    def run(self) -> Path:
        return RUN / str(self.slot)

    @property
    def api_host(self) -> str:
        """Where clients reach the API server: loopback, unless nodes must reach it too."""
        return self.addresses.control if self.real_nodes else "127.0.0.1"

    @property
    def api_url(self) -> str:
        return f"https://{self.api_host}:{self.addresses.port(0)}"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def needs_root(self) -> bool:
        return self.real_nodes > 0


def checked(spec: Spec) -> Spec:
    """The spec with add-ons in their fixed order, or an error that says what is wrong."""
    if not spec.name.replace("-", "").isalnum() or len(spec.name) > 40:
        raise ClusterError(f"name: {spec.name!r} must be letters, digits and `-`, at most 40")
    known = (*ADDONS, *PEERS)
    unknown = sorted(set(spec.addons) - set(known))
    if unknown:
        raise ClusterError(f"add-on: {unknown[0]!r} is not known", f"Use: {', '.join(ADDONS)}.")
    homeless = sorted(set(spec.addons) & _NEEDS_NODES) if spec.profile != "full" else []
    if homeless:
        raise ClusterError(
            f"add-on: {homeless[0]!r} runs on real nodes, and profile {spec.profile!r} has none",
            "Use `--profile full`.",
        )
    if spec.oldest and spec.profile != "api":
        raise ClusterError(
            f"oldest: there is an old API server alone, and profile {spec.profile!r} needs more",
            "Use `--profile api`.",
        )
    if not 1 <= spec.nodes <= 9:
        raise ClusterError(f"nodes: {spec.nodes} must be between 1 and 9")
    wanted = set(spec.addons) | ({"kwok"} if spec.profile == "kwok" else set())
    wanted |= {"jobset"} if "trainer" in wanted else set()
    fake = spec.fake_nodes or (100 if spec.profile == "kwok" else 10)
    return msgspec.structs.replace(
        spec,
        addons=tuple(name for name in known if name in wanted),
        fake_nodes=fake if "kwok" in wanted else 0,
    )


def components_of(spec: Spec) -> tuple[c.Component, ...]:
    """What must be built for this cluster, and nothing more."""
    needed = [c.ETCD, c.OLDEST_CONTROL if spec.oldest else c.CONTROL, c.KUBECTL]
    if spec.profile != "api":
        needed.append(c.SCHEDULER)
    if spec.real_nodes:
        needed.append(c.NODE)
    needed += [_ADDON_COMPONENTS[name] for name in spec.addons if name in _ADDON_COMPONENTS]
    return tuple(needed)


def load(name: str) -> Spec | None:
    """The spec of an existing cluster, dead or alive."""
    try:
        data = (clusters_root() / name / "spec.json").read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(data, type=Spec)


def existing() -> list[Spec]:
    """All clusters that have state on this machine."""
    root = clusters_root()
    names = sorted(path.parent.name for path in root.glob("*/spec.json"))
    return [spec for name in names if (spec := load(name))]
