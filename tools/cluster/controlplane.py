"""The control plane's command lines, as pure values.

Each function says how one program is started for a cluster. The settings differ from a
production cluster only where a laptop must (no fsync, loopback or the cluster's own address);
admission, RBAC, tokens, aggregation and audit are the real thing.
"""

from __future__ import annotations

from pathlib import Path

from tools.cluster.addresses import Port
from tools.cluster.spec import Spec


def audit_policy(spec: Spec) -> dict[str, object]:
    """Who asked for what, without bodies: they hold secrets."""
    everything: dict[str, object] = {"level": "Metadata"}
    chosen = [{**everything, "users": list(spec.audit_users)}, {"level": "None"}]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": chosen if spec.audit_users else [everything],
    }


def etcd(spec: Spec, program: Path) -> list[str]:
    """etcd with client certificates required; its data need not survive a power cut."""
    plan, pki = spec.addresses, spec.state / "pki"
    client = f"https://127.0.0.1:{plan.port(Port.ETCD)}"
    peer = f"http://127.0.0.1:{plan.port(Port.ETCD_PEER)}"
    return [
        str(program),
        f"--data-dir={spec.state / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--listen-metrics-urls=http://127.0.0.1:{plan.port(Port.ETCD_METRICS)}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki / 'ca.crt'}",
        f"--cert-file={pki / 'etcd.crt'}",
        f"--key-file={pki / 'etcd.key'}",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    ]


def apiserver(spec: Spec, program: Path) -> list[str]:
    """The API server. OpenShift's owner reference check is on, as our users have it."""
    plan, pki = spec.addresses, spec.state / "pki"
    flags = {
        "etcd-servers": f"https://127.0.0.1:{plan.port(Port.ETCD)}",
        "etcd-cafile": pki / "ca.crt",
        "etcd-certfile": pki / "apiserver.crt",
        "etcd-keyfile": pki / "apiserver.key",
        "bind-address": spec.api_host,
        "secure-port": plan.port(Port.API),
        "advertise-address": spec.api_host,
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction,OwnerReferencesPermissionEnforcement",
        "service-cluster-ip-range": plan.services,
        "allow-privileged": "true",
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "kubelet-certificate-authority": pki / "ca.crt",
        "kubelet-client-certificate": pki / "kubelet-client.crt",
        "kubelet-client-key": pki / "kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        "proxy-client-cert-file": pki / "front-proxy.crt",
        "proxy-client-key-file": pki / "front-proxy.key",
        "requestheader-client-ca-file": pki / "ca.crt",
        "requestheader-allowed-names": "front-proxy",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        # Webhooks and aggregated APIs go straight to pod addresses: the host has no kube-proxy.
        "enable-aggregator-routing": "true",
        # Without nodes the address is loopback, which no Endpoints object may hold.
        "endpoint-reconciler-type": "lease" if spec.real_nodes else "none",
        "max-requests-inflight": 800,
        "max-mutating-requests-inflight": 400,
        "v": 1,
    }
    if not spec.oldest:
        # The scc add-on is a MutatingAdmissionPolicy, which is beta in the newest version.
        flags |= {
            "feature-gates": "MutatingAdmissionPolicy=true",
            "runtime-config": "admissionregistration.k8s.io/v1beta1=true",
        }
    if spec.audit:
        flags |= {
            "audit-policy-file": spec.state / "audit-policy.yaml",
            "audit-log-path": spec.state / "log" / "audit.log",
            # The batch mode writes up to 30 s late.
            "audit-log-mode": "blocking",
            "audit-log-maxsize": 2000,
        }
    return [str(program), *(f"--{name}={value}" for name, value in flags.items())]


def tuning(spec: Spec) -> dict[str, str]:
    """The API server's environment: without nodes it may spend 100 MiB to start sooner.

    A fifth of the CPU time of its start is garbage collection of a heap that only grows.
    """
    return {} if spec.real_nodes else {"GOGC": "400"}


def controllers(spec: Spec, program: Path) -> list[str]:
    """The controller manager, with client limits that do not become the bottleneck of tests."""
    pki = spec.state / "pki"
    return [
        *_manager(spec, program, "controllers", Port.CONTROLLERS),
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        "--use-service-account-credentials=true",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--controllers=*,-nodeipam",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
        # A fake node that is late has lost nothing, and KWOK would never call its pods ready again.
        *([] if spec.real_nodes else ["--node-monitor-grace-period=1h"]),
    ]


def scheduler(spec: Spec, program: Path) -> list[str]:
    """The scheduler."""
    return [
        *_manager(spec, program, "scheduler", Port.SCHEDULER),
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def _manager(spec: Spec, program: Path, identity: str, port: int) -> list[str]:
    config = spec.state / f"{identity}.kubeconfig"
    pki = spec.state / "pki"
    return [
        str(program),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={spec.addresses.port(port)}",
        f"--tls-cert-file={pki / 'etcd.crt'}",
        f"--tls-private-key-file={pki / 'etcd.key'}",
        "--v=1",
    ]
