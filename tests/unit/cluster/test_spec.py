"""What a cluster may be asked to be, and which addresses it then has."""

from __future__ import annotations

import ipaddress
import itertools
import socket

import pytest

from tools.cluster.addresses import SLOTS, Addresses, Port
from tools.cluster.errors import ClusterError
from tools.cluster.network import free_slot
from tools.cluster.spec import Spec, checked


def test_add_ons_are_kept_once_and_in_their_fixed_order() -> None:
    assert checked(Spec(addons=("scc", "dns", "scc"))).addons == ("dns", "scc")


def test_the_kwok_profile_has_fake_nodes_only() -> None:
    spec = checked(Spec(profile="kwok"))
    assert (spec.addons, spec.fake_nodes, spec.real_nodes) == (("kwok",), 100, 0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (Spec(addons=("istio",)), "add-on: 'istio' is not known"),
        (Spec(profile="api", addons=("dns",)), "runs on real nodes"),
        (Spec(name="../up"), "name: '../up' must be"),
        (Spec(nodes=0), "nodes: 0 must be between"),
        (Spec(profile="full", oldest=True), "oldest: there is an old API server alone"),
    ],
)
def test_impossible_clusters_are_refused_with_the_reason(spec: Spec, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        checked(spec)


def test_no_two_slots_share_an_address_or_a_port() -> None:
    plans = [Addresses(slot) for slot in range(SLOTS)]
    for one, other in itertools.combinations(plans, 2):
        assert not ipaddress.ip_network(one.block).overlaps(ipaddress.ip_network(other.block))
        assert abs(one.port(0) - other.port(0)) >= 20


@pytest.mark.parametrize("slot", range(SLOTS))
def test_one_guard_route_covers_every_address_of_a_cluster(slot: int) -> None:
    plan = Addresses(slot)
    block = ipaddress.IPv4Network(plan.block)
    node = plan.node(9)
    ranges = (plan.pods, plan.services, plan.fake_pods, node.pods)
    assert all(ipaddress.IPv4Network(each).subnet_of(block) for each in ranges)
    addresses = (plan.control, plan.dns_service, plan.kubernetes_service, node.address)
    assert all(ipaddress.IPv4Address(each) in block for each in addresses)


def test_names_fit_into_the_kernel() -> None:
    node = Addresses(SLOTS - 1).node(9)
    assert len(node.link) <= 15


def test_only_clusters_with_nodes_leave_loopback() -> None:
    assert Spec(profile="api").api_host == "127.0.0.1"
    assert Spec(profile="full").api_host == Addresses(0).control


def test_a_slot_is_passed_over_while_another_program_listens_on_one_of_its_ports() -> None:
    free = free_slot(set(), root=False)
    with socket.create_server(("127.0.0.1", Addresses(free).port(Port.ETCD))):
        assert free_slot(set(), root=False) != free
    assert free_slot(set(), root=False) == free
