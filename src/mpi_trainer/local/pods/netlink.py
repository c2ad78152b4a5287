"""A tiny rtnetlink: make links, bring them up, give them an address, list and remove them.

The message builders are pure; `Netlink` sends one request and waits for the kernel's
acknowledgement, so that a returned call means the change is done. A socket acts on the network
namespace that the process was in when the socket was opened, not the one it is in now.
"""

import os
import socket
import struct
from typing import Final, Self

from msgspec import Struct

IFF_UP: Final = 1

_NEWLINK: Final = 16
_DELLINK: Final = 17
_GETLINK: Final = 18
_NEWADDR: Final = 20
_ERROR: Final = 2
_DONE: Final = 3

_REQUEST: Final = 1
_ACK: Final = 4
_DUMP: Final = 0x300
_CREATE: Final = 0x600  # NLM_F_CREATE | NLM_F_EXCL

_IFLA_ADDRESS: Final = 1
_IFLA_IFNAME: Final = 3
_IFLA_MASTER: Final = 10
_IFLA_LINKINFO: Final = 18
_IFLA_NET_NS_PID: Final = 19
_IFLA_INFO_KIND: Final = 1
_IFLA_INFO_DATA: Final = 2
_VETH_INFO_PEER: Final = 1
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2


class Peer(Struct, frozen=True):
    """The far end of a veth pair: its name and hardware address in the namespace of a process."""

    name: str
    mac: bytes
    pid: int


def attribute(kind: int, payload: bytes) -> bytes:
    """One netlink attribute, padded to four bytes."""
    return struct.pack("=HH", len(payload) + 4, kind) + payload + b"\0" * (-len(payload) % 4)


def link_header(index: int = 0, *, up: bool = False) -> bytes:
    flags = IFF_UP if up else 0
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def bridge_message(name: str) -> bytes:
    info = attribute(_IFLA_INFO_KIND, b"bridge")
    return link_header(up=True) + _named(name) + attribute(_IFLA_LINKINFO, info)


def veth_message(name: str, bridge: int, peer: Peer) -> bytes:
    """A veth pair in one message: this end a port of the bridge, the other already moved.

    The far end stays down: the kernel refuses (ENOTCONN) to open it before the near end exists.
    """
    far = (
        link_header()
        + _named(peer.name)
        + attribute(_IFLA_ADDRESS, peer.mac)
        + attribute(_IFLA_NET_NS_PID, struct.pack("=I", peer.pid))
    )
    info = attribute(_IFLA_INFO_KIND, b"veth") + attribute(
        _IFLA_INFO_DATA, attribute(_VETH_INFO_PEER, far)
    )
    return (
        link_header(up=True)
        + _named(name)
        + attribute(_IFLA_MASTER, struct.pack("=I", bridge))
        + attribute(_IFLA_LINKINFO, info)
    )


def address_message(index: int, address: str, prefix: int) -> bytes:
    raw = socket.inet_aton(address)
    header = struct.pack("=BBBBI", socket.AF_INET, prefix, 0, 0, index)
    return header + attribute(_IFA_LOCAL, raw) + attribute(_IFA_ADDRESS, raw)


def _named(name: str) -> bytes:
    return attribute(_IFLA_IFNAME, name.encode() + b"\0")


class Netlink:
    """A request socket of the current network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def add_bridge(self, name: str) -> int:
        self._request(_NEWLINK, _CREATE, bridge_message(name))
        return socket.if_nametoindex(name)

    def add_veth(self, name: str, bridge: int, peer: Peer) -> None:
        self._request(_NEWLINK, _CREATE, veth_message(name, bridge, peer))

    def add_address(self, index: int, address: str, prefix: int) -> None:
        self._request(_NEWADDR, _CREATE, address_message(index, address, prefix))

    def set_up(self, index: int) -> None:
        self._request(_NEWLINK, 0, link_header(index, up=True))

    def remove(self, name: str) -> None:
        self._request(_DELLINK, 0, link_header() + _named(name))

    def links(self) -> tuple[str, ...]:
        """The names of all links of this namespace."""
        self._send(_GETLINK, _DUMP, link_header())
        names: list[str] = []
        while True:
            for kind, body in _messages(self._socket.recv(1 << 16)):
                if kind == _DONE:
                    return tuple(names)
                _raise_for(kind, body)
                names.extend(_names(body[16:]))

    def _request(self, kind: int, flags: int, body: bytes) -> None:
        self._send(kind, flags | _ACK, body)
        for answer, content in _messages(self._socket.recv(1 << 16)):
            _raise_for(answer, content)

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._sequence += 1
        size = 16 + len(body)
        header = struct.pack("=IHHII", size, kind, flags | _REQUEST, self._sequence, 0)
        self._socket.sendto(header + body, (0, 0))


def _messages(data: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    while len(data) >= 16:
        size, kind = struct.unpack_from("=IH", data)
        found.append((kind, data[16:size]))
        data = data[(size + 3) & ~3 :]
    return found


def _raise_for(kind: int, body: bytes) -> None:
    if kind != _ERROR:
        return
    number = -struct.unpack_from("=i", body)[0]
    if number:
        raise OSError(number, os.strerror(number))


def _names(attributes: bytes) -> list[str]:
    found: list[str] = []
    while len(attributes) >= 4:
        size, kind = struct.unpack_from("=HH", attributes)
        if kind == _IFLA_IFNAME:
            found.append(attributes[4:size].rstrip(b"\0").decode())
        attributes = attributes[(size + 3) & ~3 :]
    return found
