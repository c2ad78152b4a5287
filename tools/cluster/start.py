"""Starting all parts of a cluster in order, as much at once as the order allows.

While the API server comes up, nodes get their namespaces and containerd; while kubelets register,
images are loaded and add-ons applied. Danger: the first effect is the route that keeps packets
on the machine, and nothing may be started before it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.cluster import (
    addons,
    cgroups,
    controlplane,
    gangs,
    images,
    kernel,
    kubeconfig,
    network,
    node,
    pki,
    processes,
)
from tools.cluster.addresses import Node, Port
from tools.cluster.build import Built
from tools.cluster.client import Client, wait_until
from tools.cluster.errors import ClusterError, PortTakenError
from tools.cluster.lock import locked
from tools.cluster.paths import clusters_root
from tools.cluster.pause import pause_program
from tools.cluster.progress import say
from tools.cluster.spec import GANG_SCHEDULERS, Spec


def start(spec: Spec, built: dict[str, Built]) -> None:
    """Start everything and return when all of it is ready."""
    if os.geteuid() == 0:
        network.guard(spec.addresses)
    _credentials(spec)
    nodes = [spec.addresses.node(i) for i in range(1, spec.real_nodes + 1)]
    if nodes:
        # Before the API server, which ends at once if its address is not there yet.
        _make_host(spec)
    control = built["kubernetes-api"].bin
    processes.start(spec.state, "etcd", controlplane.etcd(spec, built["etcd"].bin / "etcd"))
    # An API server that finds no etcd tries again a whole second later.
    wait_until("etcd listens", lambda: _all_alive(spec) and _etcd_listens(spec), 120, pause=0.01)
    processes.start(
        spec.state,
        "apiserver",
        controlplane.apiserver(spec, control / "kube-apiserver"),
        environment=controlplane.tuning(spec),
    )
    for each in nodes:
        _make_node(spec, each)
    client = Client(spec)
    with ThreadPoolExecutor(max_workers=1) as pool:
        planning = pool.submit(_plans_with_images, spec, spec.addons, built)
        wait_until("the API server is ready", lambda: _all_alive(spec) and client.ready(), 240)
        say(spec.name, "API server ready")
        _start_managers(spec, built)
        for each in nodes:
            _start_node(spec, each, built["kubernetes-node"].bin)
        if nodes:
            _let_proxies_read(client)
        wait_until("the default service account exists", lambda: _has_account(client), 120)
        plans = planning.result()
    if nodes:
        wait_until(
            "all nodes are Ready",
            lambda: _all_alive(spec) and ready_nodes(client) >= len(nodes),
            300,
        )
        say(spec.name, f"{len(nodes)} nodes Ready")
    _apply_addons(spec, plans, built)


def install_addons(spec: Spec, names: Sequence[str], built: dict[str, Built]) -> None:
    """Bring add-ons to a cluster that runs, and wait until they are ready."""
    _apply_addons(spec, _plans_with_images(spec, names, built), built)


def _plans_with_images(
    spec: Spec, names: Sequence[str], built: dict[str, Built]
) -> dict[str, addons.Installation]:
    """What the add-ons bring, with their images loaded.

    Loaded before anything is applied: a kubelet that misses an image waits ten seconds.
    """
    plans = {name: addons.installation(spec, name, built) for name in names}
    archives = [archive for plan in plans.values() for archive in plan.images]
    if spec.real_nodes:
        pause = addons.program_image(node.PAUSE_IMAGE, pause_program(), "/pause")
        for index in range(1, spec.real_nodes + 1):
            address = node.socket(spec, spec.addresses.node(index))
            wait_until(f"containerd of node{index} answers", address.exists, 120)
        images.load(spec, [pause, *archives])
    return plans


def _apply_addons(
    spec: Spec, plans: dict[str, addons.Installation], built: dict[str, Built]
) -> None:
    if not plans:
        return
    if "netpol" in plans:
        _start_netpol(spec, built["kube-router"].bin / "kube-router")
    if "kwok" in plans:
        _start_kwok(spec, built)
    kubectl = [str(built["kubectl"].bin / "kubectl"), f"--kubeconfig={spec.kubeconfig}"]
    manifests = [plan.objects for plan in plans.values() if plan.objects]
    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(lambda path: _apply(kubectl, path), manifests))
    say(spec.name, f"applied {', '.join(plans)}")
    for name in plans:
        if name in gangs.DEFINITIONS:
            _start_gang_scheduler(spec, name, built[name])
    for plan in plans.values():
        for namespace, name in plan.deployments:
            wait = ["rollout", "status", f"--namespace={namespace}", f"deployment/{name}"]
            processes.run([*kubectl, *wait, "--timeout=180s"], seconds=200)
            say(spec.name, f"{name} in {namespace} available")


def ready_nodes(client: Client) -> int:
    """How many nodes, real or fake, are Ready."""
    items = client.get("/api/v1/nodes").get("items", [])
    return sum(
        condition["type"] == "Ready" and condition["status"] == "True"
        for item in items
        for condition in item["status"].get("conditions", [])
    )


def _apply(kubectl: list[str], path: Path) -> None:
    command = ["apply", "--server-side", "--force-conflicts", "-f", str(path)]
    processes.run([*kubectl, *command], seconds=120)


def _credentials(spec: Spec) -> None:
    directory = spec.state / "pki"
    pki.make(directory, pki.identities(spec))
    kubeconfig.write(spec.kubeconfig, spec.api_url, directory, "admin")
    names = ["controllers", "scheduler", "proxy", "netpol", "kwok"]
    names += GANG_SCHEDULERS
    names += [spec.addresses.node(i).name for i in range(1, spec.real_nodes + 1)]
    for name in names:
        kubeconfig.write(spec.state / f"{name}.kubeconfig", spec.api_url, directory, name)
    (spec.state / "log").mkdir()
    (spec.state / "resolv.conf").write_text(f"nameserver {spec.addresses.dns_service}\n")
    if spec.audit:
        policy = json.dumps(controlplane.audit_policy(spec))
        (spec.state / "audit-policy.yaml").write_text(policy)


def _make_host(spec: Spec) -> None:
    network.make_host(spec.addresses)
    with locked(clusters_root() / "kernel.lock", "up"):
        kernel.raise_settings(clusters_root())


def _make_node(spec: Spec, each: Node) -> None:
    """The node's namespace, cgroup, files and containerd."""
    network.make_node(spec.addresses, each)
    cgroups.create(each.netns)
    directory = node.home(spec, each)
    (directory / "cni").mkdir(parents=True)
    (spec.run / each.name).mkdir(parents=True, exist_ok=True)
    config = directory / "containerd.toml"
    config.write_text(node.containerd_config(spec, each))
    files = {
        "cni/10-pods.conflist": node.cni_config(spec, each),
        "kubelet.json": node.kubelet_config(spec, each),
        "proxy.json": node.proxy_config(spec, each),
    }
    for name, value in files.items():
        (directory / name).write_text(json.dumps(value))
    argv = ["containerd", f"--config={config}"]
    processes.start(spec.state, f"containerd-{each.name}", argv, each.netns)


def _start_managers(spec: Spec, built: dict[str, Built]) -> None:
    control = built["kubernetes-api"].bin / "kube-controller-manager"
    processes.start(spec.state, "controllers", controlplane.controllers(spec, control))
    if spec.profile != "api":
        scheduler = built["kubernetes-scheduler"].bin / "kube-scheduler"
        processes.start(spec.state, "scheduler", controlplane.scheduler(spec, scheduler))


def _start_node(spec: Spec, each: Node, programs: Path) -> None:
    address = node.socket(spec, each)
    wait_until(f"containerd of {each.name} answers", address.exists, 120)
    kubelet = node.kubelet(spec, each, programs / "kubelet")
    processes.start(spec.state, f"kubelet-{each.name}", kubelet, each.netns)
    proxy = node.proxy(spec, each, programs / "kube-proxy")
    processes.start(spec.state, f"proxy-{each.name}", proxy, each.netns)


def _let_proxies_read(client: Client) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-proxy"}
    name = "mpi-trainer:kube-proxy"
    client.apply(
        f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {**role, "name": "system:node-proxier"},
            "subjects": [user],
        },
    )


def _all_alive(spec: Spec) -> bool:
    """True; an error with its last words if something ended."""
    dead = [name for name, pid in processes.recorded(spec.state).items() if not pid]
    if dead:
        log = spec.state / "log" / f"{dead[0]}.log"
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        kind = PortTakenError if "address already in use" in tail else ClusterError
        raise kind(f"{dead[0]} ended:\n{tail}", f"The whole log is {log}.")
    return True


def _etcd_listens(spec: Spec) -> bool:
    try:
        socket.create_connection(("127.0.0.1", spec.addresses.port(Port.ETCD)), 1).close()
    except OSError:
        return False
    return True


def _has_account(client: Client) -> bool:
    return bool(client.get("/api/v1/namespaces/default/serviceaccounts/default"))


def _name(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def _start_netpol(spec: Spec, program: Path) -> None:
    for index in range(1, spec.real_nodes + 1):
        each = spec.addresses.node(index)
        argv = node.policy_enforcer(spec, each, program)
        processes.start(spec.state, f"netpol-{each.name}", argv, each.netns)


def _start_gang_scheduler(spec: Spec, name: str, built: Built) -> None:
    client = Client(spec)
    for path in gangs.SERVED[name]:
        wait_until(f"{path} is served", lambda path=path: bool(client.get(path)), 60)  # type: ignore[misc]
    for process, argv in gangs.commands(spec, name, built).items():
        processes.start(spec.state, process, argv)
    say(spec.name, f"{name} started")


def _start_kwok(spec: Spec, built: dict[str, Built]) -> None:
    kubectl = built["kubectl"].bin / "kubectl"
    documents = addons.kwok_config(spec, built["kwok"].source, kubectl)
    config = spec.state / "kwok.yaml"
    config.write_text("\n---\n".join(json.dumps(document) for document in documents))
    program = built["kwok"].bin / "kwok"
    argv = [str(program), f"--kubeconfig={spec.state}/kwok.kubeconfig", f"--config={config}"]
    processes.start(spec.state, "kwok", argv)
    client = Client(spec)
    fakes = [addons.fake_node(spec, index) for index in range(1, spec.fake_nodes + 1)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda fake: client.apply(f"/api/v1/nodes/{_name(fake)}", fake), fakes))
    wanted = spec.real_nodes + spec.fake_nodes
    wait_until("all fake nodes are Ready", lambda: ready_nodes(client) >= wanted, 90)
    say(spec.name, f"{spec.fake_nodes} fake nodes Ready")
