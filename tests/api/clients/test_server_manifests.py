"""manifests/server on a real API server: accepted, restricted, no rights, flags that work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.kube.config import load
from tests.api.accounts import VERBS, with_token
from tests.api.clients.test_server import Team, ours
from tests.api.lab import admin, served
from tests.api.running import free_port
from tests.cluster import Kubectl, eventually, restricted
from tests.rest import Rest
from tools.cluster.spec import Spec

__all__ = ["admin", "ours", "served"]

Object = dict[str, Any]
SERVER = Path(__file__).parents[3] / "manifests/server"
INTENDED = "namespace: mpi-trainer\n"
HOME = "server-home"
"""in its place: others use that one"""
FOREIGN = ("HTTPRoute", "Route", "OAuthClient")
"""kinds of others, which this API server does not know"""


@pytest.fixture(scope="module")
def home(served: Spec) -> Iterator[Kubectl]:
    kubectl = Kubectl(served, HOME)
    kubectl.apply(restricted(HOME))
    yield kubectl
    kubectl("delete", "namespace", HOME, "--wait=false")


def built(kubectl: Kubectl, folder: str) -> list[Object]:
    text = kubectl("kustomize", str(SERVER / folder))
    assert INTENDED in text
    return [*yaml.safe_load_all(text.replace(INTENDED, f"namespace: {HOME}\n"))]


def test_every_folder_is_accepted_restricted_and_gives_no_rights(home: Kubectl) -> None:
    for folder in ("ingress", "gateway", "openshift"):
        objects = built(home, folder)
        kinds = {one["kind"] for one in objects}
        assert not [kind for kind in kinds if kind.startswith(("Role", "ClusterRole", "Secret"))]
        known = [one for one in objects if one["kind"] not in FOREIGN]
        assert {one["metadata"]["namespace"] for one in known} == {HOME}
        home.apply(*known)
        (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
        template = deployment["spec"]["template"]
        assert template["spec"]["automountServiceAccountToken"] is False
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = template["metadata"] | {"name": "tried"}
        made = json.loads(
            home("create", "--dry-run=server", "-o", "json", "-f", "-", data=json.dumps(pod))
        )
        mounts = [m["mountPath"] for c in made["spec"]["containers"] for m in c["volumeMounts"]]
        assert not [path for path in mounts if "serviceaccount" in path]
        volumes = [*made["spec"]["volumes"]]
        assert not [one for one in volumes if "projected" in one]
        broken = json.loads(json.dumps(pod))
        del broken["spec"]["containers"][0]["securityContext"]
        refused = home.attempt("create", "--dry-run=server", "-f", "-", data=json.dumps(broken))
        assert "violates PodSecurity" in refused.stderr, "the namespace is restricted"


@pytest.mark.parametrize("folder", ["ingress", "gateway", "openshift"])
def test_the_port_of_grpc_is_open_to_proxies_alone(
    served: Spec, folder: str, tmp_path: Path
) -> None:
    """Whatever else the folder opens, and in whichever order they are put together."""
    root = Path(*[".."] * (len(tmp_path.parts) - 1)) / SERVER.relative_to("/")
    made = {"resources": [str(root / folder)], "components": [str(root / "grpc")]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(made))
    objects = [*yaml.safe_load_all(Kubectl(served)("kustomize", str(tmp_path)))]
    (policy,) = [one for one in objects if one["kind"] == "NetworkPolicy"]
    proxies = {"namespaceSelector": {"matchLabels": {"mpi-trainer.opendatahub.io/proxy": "true"}}}
    opened = [rule for rule in policy["spec"]["ingress"] if {"port": "grpc"} in rule["ports"]]
    assert opened == [{"from": [proxies], "ports": [{"port": "grpc"}]}]
    (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
    server = deployment["spec"]["template"]["spec"]["containers"][0]
    assert "--grpc-port=9090" in server["args"]
    assert {"name": "grpc", "containerPort": 9090} in server["ports"]


def test_its_account_may_do_nothing(home: Kubectl) -> None:
    home.apply(*(one for one in built(home, "ingress") if one["kind"] == "ServiceAccount"))
    account = with_token(home, "mpi-trainer-server")
    asked = dict.fromkeys(("secrets", "pods", "mpijobs", "trainjobs", "configmaps", "leases"), "")
    assert VERBS and account.rights(asked, HOME) == asked


def test_the_flags_of_the_manifest_serve_callers_with_their_own_tokens(
    home: Kubectl, served: Spec, ours: Team, tmp_path: Path
) -> None:
    """Without a kubeconfig, and without any login of the server's own."""
    (deployment,) = [one for one in built(home, "gateway") if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    config = load(served.kubeconfig)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(config.trust.authority or Path(config.trust.authority_file).read_bytes())
    port = free_port()
    here = {
        "--host": "127.0.0.1",
        "--port": str(port),
        "--cluster": config.server,
        "--cluster-ca": str(authority),
    }
    given = [word.partition("=") for word in container["args"]]
    words = [f"{name}={here.get(name, value)}" if mark else name for name, mark, value in given]
    assert container["command"] == ["python", "-m", "mpi_trainer.server"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *container["command"][1:], *words],
            stderr=log,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )
    try:
        user = Rest(port, ours.user.token)
        eventually("the API is served", lambda: _healthy(user))
        name = {"Host": "training.example.com"}
        listed = user.ask("GET", ours.jobs, headers=name)
        assert [one["name"] for one in listed.data["items"]] == ["ours"], listed
        forwarded = name | {"X-Forwarded-Access-Token": ours.viewer.token}
        about = Rest(port).ask("GET", "/api/v1", headers=forwarded)
        assert about.data["user"].endswith(":viewer")
        assert Rest(port).ask("GET", ours.jobs, headers=name).status == 401
        assert user.ask("GET", ours.jobs).status == 421, "another name"
    finally:
        process.terminate()
        assert process.wait(30) == 0, (tmp_path / "log").read_text()


def _healthy(server: Rest) -> bool:
    """As a probe asks, which knows no name."""
    try:
        return server.ask("GET", "/healthz").status == 200
    except ConnectionRefusedError:
        return False
