"""The job's own network: one bridge in the supervisor's namespace, one `eth0` in every pod.

The addresses are those of a private /16 that exists only inside the namespaces: there is no
route out and no clash with the machine's networks. A pod's hardware address follows from its
address, so that a restarted worker is reached at once and not after its peers' ARP entries age.
"""

import contextlib
import ipaddress
import socket
from typing import Final

from mpi_trainer.local.pods.netlink import Netlink, Peer

PREFIX: Final = 16
_NETWORK: Final = ipaddress.IPv4Network("10.89.0.0/16")
_BRIDGE: Final = "pods"
_LOOPBACK_INDEX: Final = 1


def supervisor_address() -> str:
    """The bridge's own address, from which the supervisor reaches every pod."""
    return str(_NETWORK[1])


def pod_address(index: int) -> str:
    """The address of the pod with this number, counted from 0."""
    if not 0 <= index < _NETWORK.num_addresses - 3:
        raise ValueError(f"pod number {index}: must be between 0 and {_NETWORK.num_addresses - 4}")
    return str(_NETWORK[index + 2])


def hardware_address(address: str) -> bytes:
    return b"\x02\x59" + socket.inet_aton(address)


class PodNetwork:
    """The bridge, seen from the supervisor's network namespace."""

    def __init__(self) -> None:
        self._netlink = Netlink()
        self._netlink.set_up(_LOOPBACK_INDEX)
        self._bridge = self._netlink.add_bridge(_BRIDGE)
        self._netlink.add_address(self._bridge, supervisor_address(), PREFIX)
        self._ports: dict[str, str] = {}
        self._count = 0

    def attach(self, pid: int, address: str) -> None:
        """Give the network namespace of process `pid` an eth0 that is connected to the bridge."""
        before = self._ports.pop(address, None)
        if before is not None:
            with contextlib.suppress(OSError):  # the kernel may have removed it already
                self._netlink.remove(before)
        port = f"port{self._count}"
        self._count += 1
        peer = Peer(name="eth0", mac=hardware_address(address), pid=pid)
        self._netlink.add_veth(port, self._bridge, peer)
        self._ports[address] = port

    def close(self) -> None:
        self._netlink.close()


def configure_pod(address: str) -> None:
    """Called inside the pod's network namespace, after `attach`."""
    with Netlink() as netlink:
        netlink.set_up(_LOOPBACK_INDEX)
        eth0 = socket.if_nametoindex("eth0")
        netlink.add_address(eth0, address, PREFIX)
        netlink.set_up(eth0)
