"""A node's configuration files and command lines, as pure values.

A node is containerd, a kubelet and kube-proxy in one network namespace, with a routed pod
network of its own. Danger: nodes share the host's file system and kernel, so every path, cgroup
and socket must be the node's own; two kubelets sharing a directory lose each other's files.
"""

from __future__ import annotations

from pathlib import Path

from tools.cluster.addresses import Node
from tools.cluster.spec import Spec

PAUSE_IMAGE = "localhost/pause:1"


def socket(spec: Spec, node: Node) -> Path:
    """containerd's socket."""
    return spec.run / node.name / "containerd.sock"


def home(spec: Spec, node: Node) -> Path:
    """The node's own directory on disk."""
    return spec.state / node.name


def containerd_config(spec: Spec, node: Node) -> str:
    """containerd's TOML."""
    directory, run = home(spec, node), spec.run / node.name
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "{directory}/containerd"
state = "{run}/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "{run}/containerd.sock"
[{cri}]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [{cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [{cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{directory}/cni"
"""


def cni_config(spec: Spec, node: Node) -> dict[str, object]:
    """The pod network: `ptp`, so that traffic between pods of one node is routed too.

    Routed traffic passes the node's packet filter, where Services and NetworkPolicies live.
    """
    ipam = {
        "type": "host-local",
        "dataDir": f"{spec.run / node.name}/ipam",
        "ranges": [[{"subnet": node.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "0.4.0",
        "name": node.netns,
        "plugins": [
            {"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet_config(spec: Spec, node: Node) -> dict[str, object]:
    """The kubelet's configuration; every path and the cgroup are this node's own."""
    pki = spec.state / "pki"
    directory = home(spec, node)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{socket(spec, node)}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.netns}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "enforceNodeAllocatable": [],
        "featureGates": {"KubeletInUserNamespace": True},
        "clusterDNS": [spec.addresses.dns_service],
        "clusterDomain": "cluster.local",
        "resolvConf": str(spec.state / "resolv.conf"),
        "podLogsDir": f"{directory}/podlogs",
        "maxPods": 200,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / f"{node.name}.crt"),
        "tlsPrivateKeyFile": str(pki / f"{node.name}.key"),
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
        "serializeImagePulls": False,
        "registerNode": True,
    }


def proxy_config(spec: Spec, node: Node) -> dict[str, object]:
    """kube-proxy's configuration; conntrack settings are read-only in a namespace."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(spec.state / "proxy.kubeconfig")},
        "clusterCIDR": spec.addresses.pods,
        "detectLocalMode": "ClusterCIDR",
        "hostnameOverride": node.name,
        "nodePortAddresses": ["primary"],
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def kubelet(spec: Spec, node: Node, program: Path) -> list[str]:
    """The kubelet's command line."""
    directory = home(spec, node)
    return [
        str(program),
        f"--config={directory}/kubelet.json",
        f"--kubeconfig={spec.state}/{node.name}.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--root-dir={directory}/kubelet",
        f"--cert-dir={directory}/certs",
        "--v=1",
    ]


def proxy(spec: Spec, node: Node, program: Path) -> list[str]:
    """kube-proxy's command line."""
    return [str(program), f"--config={home(spec, node)}/proxy.json", "--v=1"]


def policy_enforcer(spec: Spec, node: Node, program: Path) -> list[str]:
    """kube-router as firewall only: it turns NetworkPolicies into the node's filter rules."""
    return [
        str(program),
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-firewall=true",
        "--enable-cni=false",
        f"--kubeconfig={spec.state}/netpol.kubeconfig",
        f"--hostname-override={node.name}",
        f"--service-cluster-ip-range={spec.addresses.services}",
        "--health-port=0",
        "--metrics-port=0",
        "--iptables-sync-period=30s",
        "--v=1",
    ]
