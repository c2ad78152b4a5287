"""The host's side of a cluster's network: cables, routes and namespaces, made and taken back.

The first thing made is an `unreachable` route over the cluster's whole block, so that a packet
to an address that is not there fails at once and never leaves the machine; real routes are more
specific and win. Nodes have no way out beyond the block either. Danger: IP forwarding on the host
is turned on while a cluster with nodes exists; the old value comes back with the last one's end.
"""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Final

from tools.cluster.addresses import SLOTS, Addresses, Node
from tools.cluster.errors import ClusterError
from tools.cluster.ports import is_free
from tools.cluster.processes import run

_NAMESPACES: Final = Path("/run/netns")


def guard(plan: Addresses) -> None:
    """Keep every packet for the cluster's block on this machine."""
    run(["ip", "route", "replace", "unreachable", plan.block, "metric", "9999"])


def unguard(plan: Addresses) -> None:
    """Take the guard back."""
    if plan.block in run(["ip", "route", "show", "type", "unreachable"]):
        run(["ip", "route", "del", "unreachable", plan.block])


def conflict(plan: Addresses) -> str:
    """A route of this host that lies inside the block; a wider one is merely shadowed."""
    block = ipaddress.IPv4Network(plan.block)
    for route in json.loads(run(["ip", "-j", "route", "show", "table", "all"]) or "[]"):
        destination = route.get("dst", "default")
        if destination == "default" or ":" in destination:
            continue
        if ipaddress.IPv4Network(destination, strict=False).subnet_of(block):
            return str(destination)
    return ""


def make_host(plan: Addresses) -> None:
    """The bridge that holds the API server's address. (The `dummy` link type is often missing.)"""
    run(["ip", "link", "add", plan.bridge, "type", "bridge"])
    run(["ip", "address", "add", f"{plan.control}/32", "dev", plan.bridge])
    run(["ip", "link", "set", plan.bridge, "up"])


def make_node(plan: Addresses, node: Node) -> None:
    """A node's namespace, its cable to the host and the routes on both sides."""
    inside = ["ip", "-n", node.netns]
    run(["ip", "netns", "add", node.netns])
    run(["ip", "link", "add", node.link, "type", "veth", "peer", "name", "eth0",
         "netns", node.netns])  # fmt: skip
    run(["ip", "address", "add", f"{node.gateway}/30", "dev", node.link])
    run(["ip", "link", "set", node.link, "up"])
    run([*inside, "address", "add", f"{node.address}/30", "dev", "eth0"])
    run([*inside, "link", "set", "lo", "up"])
    run([*inside, "link", "set", "eth0", "up"])
    run([*inside, "route", "add", plan.block, "via", node.gateway])
    # An address that no pod has must end here: the block's route would send it round in circles.
    for nowhere in (node.pods, "default"):
        run([*inside, "route", "add", "unreachable", nowhere, "metric", "9999"])
    run(["ip", "route", "replace", node.pods, "via", node.address])
    settings = ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"]
    settings.append("net.ipv4.conf.default.rp_filter=0")
    run(["nsenter", f"--net={_NAMESPACES / node.netns}", "sysctl", "-qw", *settings])


def remove(plan: Addresses) -> None:
    """Take back every namespace and link of this slot, whoever made it and however far it came."""
    for name in namespaces(plan):
        run(["ip", "netns", "delete", name])
    for name in links(plan):
        try:
            run(["ip", "link", "delete", name])
        except ClusterError:
            # The kernel takes a cable away with the namespace at its other end.
            if name in links(plan):
                raise


def namespaces(plan: Addresses) -> list[str]:
    """This slot's network namespaces."""
    return sorted(path.name for path in _NAMESPACES.glob(f"mpt{plan.slot}-*"))


def links(plan: Addresses) -> list[str]:
    """This slot's links on the host."""
    prefix = f"mpt{plan.slot}"
    found = (path.name for path in Path("/sys/class/net").iterdir())
    return sorted(name for name in found if name == prefix or name.startswith(f"{prefix}n"))


def free_slot(taken: set[int], root: bool) -> int:
    """The first slot that no cluster has and whose block and ports are free on this host."""
    for slot in range(SLOTS):
        plan = Addresses(slot)
        if slot not in taken and all(map(is_free, plan.ports)) and not (root and conflict(plan)):
            return slot
    raise ClusterError(
        f"all {SLOTS} address blocks from 10.160.0.0 on are in use, or their ports are",
        "End a cluster: see `python -m tools.cluster list`.",
    )
