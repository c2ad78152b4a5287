"""Pods reach each other by name across nodes, and a NetworkPolicy blocks what it should."""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster import Kubectl, eventually, restricted
from tests.e2e.manifests import headless, pod

SERVE = ["python3", "-m", "http.server", "8080"]
SLEEP = ["sleep", "100000"]
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


def _connects(kubectl: Kubectl, source: str, host: str, port: int) -> bool:
    answer = kubectl.run_in(source, "python3", "-c", CONNECT, host, str(port))
    assert answer.returncode == 0 or "Traceback" in answer.stderr, answer.stderr
    return answer.returncode == 0


def test_pods_on_different_nodes_reach_each_other_by_dns_name(
    namespace: Kubectl, image: Callable[[str], str]
) -> None:
    base = image("mpi-base")
    named = {"hostname": "server", "subdomain": "web"}
    namespace.apply(
        headless("web", {"app": "server"}),
        pod("server", base, 1, SERVE, **named),
        pod("client", base, 2, SLEEP),
    )
    namespace.wait("--for=condition=Ready", "pod/server", "pod/client")
    long_name = f"server.web.{namespace.namespace}.svc.cluster.local"
    names = ("server.web", long_name, "web")
    eventually(
        "all names answer", lambda: all(_connects(namespace, "client", n, 8080) for n in names)
    )
    assert not _connects(namespace, "client", "nobody.web", 8080)
    assert namespace.run_in("server", "hostname", "-f").stdout.strip() == long_name


def test_a_service_balances_to_a_pod_on_another_node(
    namespace: Kubectl, image: Callable[[str], str]
) -> None:
    base = image("mpi-base")
    namespace.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "front"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
        pod("server", base, 3, SERVE),
        pod("client", base, 1, SLEEP),
    )
    namespace.wait("--for=condition=Ready", "pod/server", "pod/client")
    eventually("the Service answers", lambda: _connects(namespace, "client", "front", 80))


def test_no_packet_of_a_pod_leaves_the_machine(
    namespace: Kubectl, image: Callable[[str], str]
) -> None:
    """An address outside the cluster, or inside it that nobody has, fails at once."""
    namespace.apply(pod("client", image("mpi-base"), 1, SLEEP))
    namespace.wait("--for=condition=Ready", "pod/client")
    plan = namespace.spec.addresses
    unused_pods = [plan.node(i).pods.replace("0/24", "250") for i in (1, 2)]
    for address in ("198.51.100.1", plan.node(9).address, *unused_pods):
        answer = namespace.run_in("client", "python3", "-c", CONNECT, address, "80")
        assert "No route to host" in answer.stderr, address


def test_a_network_policy_blocks_what_it_should_and_only_that(
    namespace: Kubectl, image: Callable[[str], str]
) -> None:
    base = image("mpi-base")
    other = Kubectl(namespace.spec, f"{namespace.namespace}-b")
    other.apply(restricted(other.namespace))
    try:
        namespace.apply(
            pod("server", base, 1, SERVE, labels={"team": "a"}),
            pod("peer", base, 2, SLEEP, labels={"team": "a"}),
            pod("bystander", base, 3, SERVE),
        )
        other.apply(pod("near", base, 1, SLEEP), pod("far", base, 2, SLEEP))
        namespace.wait("--for=condition=Ready", "pod/server", "pod/peer", "pod/bystander")
        other.wait("--for=condition=Ready", "pod/near", "pod/far")
        server = namespace.get("pod", "server")["status"]["podIP"]
        bystander = namespace.get("pod", "bystander")["status"]["podIP"]
        pairs = ((namespace, "peer"), (other, "near"), (other, "far"))

        def seen() -> list[bool]:
            return [_connects(where, who, server, 8080) for where, who in pairs]

        eventually("all is open without a policy", lambda: seen() == [True, True, True])
        team = {"matchLabels": {"team": "a"}}
        allowed = {"from": [{"podSelector": team}], "ports": [{"port": 8080}]}
        namespace.apply(
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": "team-only"},
                "spec": {"podSelector": team, "policyTypes": ["Ingress"], "ingress": [allowed]},
            }
        )
        eventually("only the peer connects", lambda: seen() == [True, False, False])
        assert _connects(other, "far", bystander, 8080)
        namespace("delete", "networkpolicy", "team-only")
        eventually("all is open again", lambda: seen() == [True, True, True])
    finally:
        other("delete", "namespace", other.namespace, "--wait=false")
