"""What is installed names one version, and gives the controller's pods no more than they need."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer import __version__
from tools.cluster.user_images import USER_IMAGES

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
FILES = sorted(path for path in MANIFESTS.rglob("*.yaml") if path.parent.name != "crds")
PINS = re.compile(r"^([a-z0-9-]+==\S+)", re.MULTILINE)


def documents() -> list[dict[str, Any]]:
    return [each for file in FILES for each in yaml.safe_load_all(file.read_text()) if each]


def test_every_place_names_the_version_of_the_code() -> None:
    images = [image for each in documents() for image in each.get("images", ())]
    references = {f"{image['newName']}:{image['newTag']}" for image in images}
    assert references == {USER_IMAGES["mpi-trainer"].reference}
    recipe = (ROOT / "images/mpi-trainer/Containerfile").read_text()
    assert f'image.version="{__version__}"' in recipe


@pytest.mark.parametrize("image", ["controller", "initializers"])
def test_an_image_holds_what_the_project_is_tested_with(image: str) -> None:
    held = set(PINS.findall((ROOT / f"requirements/{image}.txt").read_text()))
    assert held
    assert held <= set(PINS.findall((ROOT / "requirements/dev.txt").read_text()))


def test_the_initializers_image_is_of_this_version() -> None:
    recipe = (ROOT / "images/mpi-initializer/Containerfile").read_text()
    assert f'image.version="{__version__}"' in recipe
    page = (ROOT / "docs/initializers.md").read_text()
    assert USER_IMAGES["mpi-initializer"].reference in page


def test_no_role_lists_or_watches_secrets_and_none_has_a_wildcard() -> None:
    """CTL-7."""
    rules = [rule for each in documents() for rule in each.get("rules", ())]
    assert len(rules) > 20
    for rule in rules:
        assert not [word for words in rule.values() for word in words if "*" in word]
        if "secrets" in rule.get("resources", ()):
            assert not {"list", "watch", "deletecollection"} & set(rule["verbs"])


def test_kubeflow_s_sdk_finds_what_the_cluster_serves() -> None:
    """W-9: its own words for namespace, name and key; whoever is known may read it."""
    folder = MANIFESTS / "kubeflow-sdk"
    assert yaml.safe_load((folder / "kustomization.yaml").read_text())["namespace"] == (
        "kubeflow-system"
    )
    told, role, binding = yaml.safe_load_all((folder / "public.yaml").read_text())
    assert told["metadata"]["name"] == "kubeflow-trainer-public"
    assert told["data"] == {"kubeflow_trainer_version": "v2.3.0"}
    assert role["rules"][0]["resourceNames"] == ["kubeflow-trainer-public"]
    assert binding["subjects"][0]["name"] == "system:authenticated"


def test_metrics_are_closed_to_whoever_may_not_read_them() -> None:
    """S-16: they name all tenants' namespaces."""
    containers = [
        container
        for each in documents()
        if each["kind"] == "Deployment"
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    assert len(containers) == 3
    for container in containers:
        server = container["name"] == "server"
        assert ("--metrics-port=9443" if server else "--secure-metrics") in container["args"]
        port = {"name": "metrics", "containerPort": 9443 if server else 8443}
        assert port in container["ports"]
    monitors = [each for each in documents() if each["kind"] == "ServiceMonitor"]
    for endpoint in (e for each in monitors for e in each["spec"]["endpoints"]):
        assert endpoint["scheme"] == "https"
        assert endpoint["bearerTokenFile"].endswith("/token")
    name = "mpi-trainer-metrics-reader"
    (reader,) = [e for e in documents() if e.get("metadata", {}).get("name") == name]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_no_network_policy_is_for_all_pods_of_its_namespace() -> None:
    """The pods of jobs may be in it, and talk to each other by SSH and MPI."""
    policies = [each for each in documents() if each["kind"] == "NetworkPolicy"]
    assert policies
    for policy in policies:
        assert "app.kubernetes.io/component" in policy["spec"]["podSelector"]["matchLabels"]


PODS = [
    each["spec"]["template"]["spec"]
    for each in documents()
    if each["kind"] in ("Deployment", "Job")
]


@pytest.mark.parametrize("pod", PODS)
def test_pods_are_restricted_and_name_no_user(pod: dict[str, Any]) -> None:
    """OpenShift's restricted-v2 gives the user id; a number of ours would be refused."""
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]


DEPLOYMENTS = [each for each in documents() if each["kind"] == "Deployment"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda each: each["metadata"]["name"])
def test_replicas_are_spread_over_nodes_with_and_without_zones(deployment: dict[str, Any]) -> None:
    """U-5: a node without the label of one constraint is left out of all of them."""
    pod = deployment["spec"]["template"]["spec"]
    (nodes,) = pod["topologySpreadConstraints"]
    assert nodes["topologyKey"] == "kubernetes.io/hostname"
    assert nodes["matchLabelKeys"] == ["pod-template-hash"]
    affinity = pod["affinity"]["podAntiAffinity"]
    (zones,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    term = zones["podAffinityTerm"]
    assert term["topologyKey"] == "topology.kubernetes.io/zone"
    assert term["labelSelector"] == nodes["labelSelector"]
