"""Each contestant's own service account: the rights that its manifests give it, and no others.

No administrator: those pass by the API server's priority and fairness, which an installed
controller does not. The account's name tells a contestant's requests from everybody else's in the
audit log.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tools.cluster.client import Client
from tools.cluster.report import environment
from tools.cluster.spec import Spec

HOME: Final = "mpi-operator"
"""namespace of the accounts and of the contestants' leases"""
_OWN: Final = Path(__file__).parents[1] / "manifests"
OURS: Final = (_OWN / "rights/cluster/rights.yaml", _OWN / "base/leases.yaml")
_RBAC: Final = "rbac.authorization.k8s.io"


class Account(msgspec.Struct, frozen=True):
    """`rights` are the files with its roles; of several roles in a file those called `role`."""

    name: str
    rights: tuple[Path, ...]
    role: str = ""

    @property
    def user(self) -> str:
        """As the audit log calls it."""
        return user(self.name)

    def kubeconfig(self, spec: Spec) -> Path:
        return spec.state / f"{self.name}.kubeconfig"


def user(name: str) -> str:
    return f"system:serviceaccount:{HOME}:{name}"


def admit(spec: Spec, accounts: Iterable[Account]) -> None:
    """Make the accounts, give them their rights, and write their kubeconfigs."""
    client = Client(spec)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    client.apply(f"/api/v1/namespaces/{HOME}", namespace)
    for one in accounts:
        kind = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": one.name}}
        client.apply(f"/api/v1/namespaces/{HOME}/serviceaccounts/{one.name}", kind)
        role = _role(one.name, "ClusterRole", rules=_rules(one))
        client.apply(f"/apis/{_RBAC}/v1/clusterroles/{one.name}", role)
        whom = [{"kind": "ServiceAccount", "name": one.name, "namespace": HOME}]
        ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": one.name}
        binding = _role(one.name, "ClusterRoleBinding", roleRef=ref, subjects=whom)
        client.apply(f"/apis/{_RBAC}/v1/clusterrolebindings/{one.name}", binding)
        _write(spec, one)


def _rules(account: Account) -> list[Any]:
    roles = [
        one
        for file in account.rights
        for one in yaml.safe_load_all(file.read_text())
        if one["kind"] in ("Role", "ClusterRole")
        if account.role in ("", one["metadata"]["name"])
    ]
    return [rule for role in roles for rule in role["rules"]]


def _role(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": {"name": name}, **more}


def _write(spec: Spec, account: Account) -> None:
    words = ["kubectl", "create", "token", account.name, f"--namespace={HOME}", "--duration=24h"]
    done = subprocess.run(words, env=environment(spec), check=True, capture_output=True, text=True)
    ca = str(spec.state / "pki" / "ca.crt")
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": _cluster(spec, ca)}],
        "users": [{"name": "it", "user": {"token": done.stdout.strip()}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path = account.kubeconfig(spec)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(content, file)


def _cluster(spec: Spec, ca: str) -> dict[str, str]:
    return {"server": spec.api_url, "certificate-authority": ca}
