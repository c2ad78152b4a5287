"""Links and addresses, made in a network namespace of the test's own."""

import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from mpi_trainer.local.pods import network, syscalls
from mpi_trainer.local.pods.netlink import Netlink, Peer, attribute
from tests.local.scenario import ORDINARY_UID, in_child, needs_root

MAC = b"\x02\x00\x00\x00\x00\x07"


def in_own_network(body: Callable[[], Any]) -> Any:
    def run() -> Any:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        return body()

    return in_child(0, run)


def test_attributes_are_padded_but_say_their_true_length() -> None:
    assert attribute(3, b"eth0\0") == b"\x09\x00\x03\x00eth0\0\0\0\0"


@needs_root
def test_new_namespace_has_only_its_loopback_and_then_what_is_made() -> None:
    def body() -> Any:
        with Netlink() as netlink:
            before = netlink.links()
            bridge = netlink.add_bridge("br")
            netlink.add_veth("port", bridge, Peer("eth0", MAC, os.getpid()))
            with_veth = netlink.links()
            netlink.remove("port")
            return before, with_veth, netlink.links()

    before, with_veth, after = in_own_network(body)
    assert before == ("lo",)
    assert set(with_veth) == {"lo", "br", "port", "eth0"}
    assert after == ("lo", "br")


@needs_root
def test_address_is_usable_at_once() -> None:
    def body() -> Any:
        with Netlink() as netlink:
            netlink.set_up(1)
            bridge = netlink.add_bridge("br")
            netlink.add_address(bridge, "10.1.2.3", 16)
        with socket.create_server(("10.1.2.3", 0)) as server:
            return server.getsockname()[0]

    assert in_own_network(body) == "10.1.2.3"


@needs_root
@pytest.mark.parametrize(
    ("action", "number"),
    [
        (lambda n: n.remove("nothing"), errno.ENODEV),
        (lambda n: (n.add_bridge("br"), n.add_bridge("br")), errno.EEXIST),
        (lambda n: n.add_address(99, "10.0.0.1", 8), errno.ENODEV),
    ],
)
def test_refusals_carry_the_kernels_error(action: Callable[[Netlink], Any], number: int) -> None:
    def body() -> Any:
        with Netlink() as netlink, pytest.raises(OSError) as caught:
            action(netlink)
        return caught.value.errno

    assert in_own_network(body) == number


@needs_root
def test_ordinary_user_is_refused_in_the_machines_own_network() -> None:
    def body() -> Any:
        with Netlink() as netlink, pytest.raises(PermissionError):
            netlink.add_bridge("mpitest")
        return True

    assert in_child(ORDINARY_UID, body)


def test_pod_addresses_are_distinct_and_not_the_supervisors() -> None:
    addresses = [network.pod_address(i) for i in range(1000)]
    assert len({*addresses, network.supervisor_address()}) == 1001
    assert network.pod_address(0) == "10.89.0.2"
    assert network.pod_address(300) == "10.89.1.46"
    assert len({network.hardware_address(a) for a in addresses}) == 1000
    with pytest.raises(ValueError, match="pod number 65533"):
        network.pod_address(65533)
