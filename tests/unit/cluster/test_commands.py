"""Command lines and configuration files, as far as a mistake there would be silent."""

from __future__ import annotations

from pathlib import Path

from tools.cluster import controlplane, node
from tools.cluster.spec import Spec

FULL = Spec(profile="full", slot=1)


def _flags(argv: list[str]) -> dict[str, str]:
    pairs = (flag.removeprefix("--").partition("=") for flag in argv[1:])
    return {name: value for name, _, value in pairs}


def test_the_api_server_listens_on_the_clusters_own_address_only() -> None:
    flags = _flags(controlplane.apiserver(FULL, Path("kube-apiserver")))
    assert flags["bind-address"] == FULL.addresses.control
    loopback = _flags(controlplane.apiserver(Spec(profile="api"), Path("kube-apiserver")))
    assert loopback["bind-address"] == "127.0.0.1"


def test_owner_references_are_checked_as_on_openshift() -> None:
    flags = _flags(controlplane.apiserver(FULL, Path("kube-apiserver")))
    assert "OwnerReferencesPermissionEnforcement" in flags["enable-admission-plugins"]


def test_the_audit_log_is_written_on_request_and_at_once() -> None:
    assert "audit-log-path" not in _flags(controlplane.apiserver(FULL, Path("a")))
    audited = _flags(controlplane.apiserver(Spec(audit=True), Path("a")))
    assert audited["audit-log-mode"] == "blocking"


def test_etcd_serves_only_clients_with_a_certificate() -> None:
    argv = controlplane.etcd(FULL, Path("etcd"))
    assert "--client-cert-auth" in argv
    assert _flags(argv)["listen-client-urls"].startswith("https://127.0.0.1:")


def test_no_two_nodes_share_a_path_a_socket_or_a_cgroup() -> None:
    one, two = FULL.addresses.node(1), FULL.addresses.node(2)
    configs = [node.kubelet_config(FULL, each) for each in (one, two)]
    own = ("containerRuntimeEndpoint", "cgroupRoot", "podLogsDir", "tlsCertFile")
    for key in own:
        assert configs[0][key] != configs[1][key]
    assert node.containerd_config(FULL, one) != node.containerd_config(FULL, two)


def test_pods_of_one_node_reach_each_other_by_routing() -> None:
    plugins = node.cni_config(FULL, FULL.addresses.node(1))["plugins"]
    assert isinstance(plugins, list)
    assert [plugin["type"] for plugin in plugins] == ["ptp", "portmap"]
    assert plugins[0]["ipMasq"] is False
