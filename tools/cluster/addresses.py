"""Which addresses and ports a cluster uses, all derived from its slot number.

A slot is a /14 between 10.160.0.0 and 10.223.255.255 that holds the pod, service and node
ranges, so that one `unreachable` route on the host keeps every packet of a cluster on the
machine. Two clusters with different slots share nothing. Danger: the block must not be in use
on the host already.
"""

from __future__ import annotations

from typing import Final

import msgspec

SLOTS: Final = 16
_FIRST_OCTET: Final = 160
_FIRST_PORT: Final = 21000


class Node(msgspec.Struct, frozen=True):
    """One node's names and addresses."""

    name: str
    netns: str
    link: str
    """the host's end of the node's cable"""
    gateway: str
    address: str
    pods: str


class Addresses(msgspec.Struct, frozen=True):
    """The addresses, ports and kernel names of the cluster in one slot."""

    slot: int

    @property
    def _base(self) -> int:
        return _FIRST_OCTET + 4 * self.slot

    @property
    def block(self) -> str:
        """All addresses of this cluster."""
        return f"10.{self._base}.0.0/14"

    @property
    def pods(self) -> str:
        return f"10.{self._base}.0.0/16"

    @property
    def services(self) -> str:
        return f"10.{self._base + 1}.0.0/16"

    @property
    def kubernetes_service(self) -> str:
        return f"10.{self._base + 1}.0.1"

    @property
    def dns_service(self) -> str:
        return f"10.{self._base + 1}.0.10"

    @property
    def control(self) -> str:
        """Where the API server listens when there are nodes."""
        return f"10.{self._base + 2}.0.1"

    @property
    def fake_pods(self) -> str:
        """Addresses that KWOK gives to its pods; nothing answers there."""
        return f"10.{self._base + 3}.0.0/16"

    @property
    def bridge(self) -> str:
        return f"mpt{self.slot}"

    def port(self, offset: int) -> int:
        """A loopback port of this cluster; see `Port`."""
        return _FIRST_PORT + 20 * self.slot + offset

    @property
    def ports(self) -> range:
        """All loopback ports of this cluster."""
        return range(self.port(Port.API), self.port(Port.COSCHEDULING) + 1)

    def node(self, index: int) -> Node:
        """The node with this number, counted from 1."""
        return Node(
            name=f"node{index}",
            netns=f"mpt{self.slot}-node{index}",
            link=f"mpt{self.slot}n{index}",
            gateway=f"10.{self._base + 2}.{index}.1",
            address=f"10.{self._base + 2}.{index}.2",
            pods=f"10.{self._base}.{index}.0/24",
        )


class Port:
    """Offsets of the ports on loopback."""

    API: Final = 0
    ETCD: Final = 1
    ETCD_PEER: Final = 2
    ETCD_METRICS: Final = 3
    CONTROLLERS: Final = 4
    SCHEDULER: Final = 5
    KWOK: Final = 6
    COSCHEDULING: Final = 7
