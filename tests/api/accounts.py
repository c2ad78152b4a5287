"""Service accounts with real tokens, and what the API server says that they may do."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tests.cluster import Kubectl, eventually

TOO_MANY = 429
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
GROUPS = {
    "mpijobs": "kubeflow.org",
    "trainjobs": "trainer.kubeflow.org",
    "trainingruntimes": "trainer.kubeflow.org",
    "clustertrainingruntimes": "trainer.kubeflow.org",
    "jobsets": "jobset.x-k8s.io",
    "jobs": "batch",
    "deployments": "apps",
    "leases": "coordination.k8s.io",
    "roles": "rbac.authorization.k8s.io",
    "rolebindings": "rbac.authorization.k8s.io",
    "customresourcedefinitions": "apiextensions.k8s.io",
}
"""the API group of each resource that is not in the core"""


class Account(msgspec.Struct, frozen=True):
    """A service account that holds a token."""

    kubectl: Kubectl
    name: str
    token: str

    def __repr__(self) -> str:
        return f"Account({self.name!r})"

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of one request in this account's name."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            self.kubectl.spec.api_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": kind},
        )
        ca = str(self.kubectl.spec.state / "pki" / "ca.crt")
        trust = ssl.create_default_context(cafile=ca)
        for wait in (1, 2, 4, 8, 0):
            try:
                with urllib.request.urlopen(request, context=trust, timeout=60) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code != TOO_MANY or not wait:
                        return error.code, json.load(error)
            time.sleep(wait)  # an API server with too much to do asks for it; every client does
        raise AssertionError

    def kubeconfig(self, folder: Path) -> Path:
        """A file, for its owner alone, by which a program acts in this account's name."""
        cluster = {
            "server": self.kubectl.spec.api_url,
            "certificate-authority": str(self.kubectl.spec.state / "pki" / "ca.crt"),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": self.token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
        path = folder / "kubeconfig"
        path.touch(0o600)
        path.write_text(json.dumps(content))
        return path

    def may(self, verb: str, resource: str, namespace: str, name: str = "") -> bool:
        """What the API server answers when the account asks about itself."""
        plural, _, sub = resource.partition("/")
        wanted = {
            "verb": verb,
            "group": GROUPS.get(plural, ""),
            "resource": plural,
            "subresource": sub,
            "namespace": namespace,
            "name": name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        status, answer = self.request("POST", path, review)
        assert status == 201, (status, answer)
        allowed: bool = answer["status"]["allowed"]
        return allowed

    def rights(self, resources: Iterable[str], namespace: str) -> dict[str, str]:
        """Each resource with the verbs that are allowed on any object of it."""
        return {
            resource: " ".join(v for v in VERBS if self.may(v, resource, namespace))
            for resource in resources
        }


def account(kubectl: Kubectl, name: str, cluster_role: str = "") -> Account:
    """A new account in the namespace, bound there to the role if one is named."""
    kubectl("create", "serviceaccount", name)
    if cluster_role:
        whom = f"--serviceaccount={kubectl.namespace}:{name}"
        kubectl("create", "rolebinding", name, f"--clusterrole={cluster_role}", whom)
    return with_token(kubectl, name)


def with_token(kubectl: Kubectl, name: str) -> Account:
    """An account that is there, with a token of its own."""
    eventually(f"account {name}", lambda: not kubectl.attempt("get", "sa", name).returncode)
    return Account(kubectl, name, kubectl("create", "token", name).strip())
