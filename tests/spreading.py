"""Our deployments as they are installed, to see where a scheduler puts their pods.

What they run does not matter here, so they run a program that waits.
"""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.cluster import Kubectl, Object, eventually

MANIFESTS = Path(__file__).parents[1] / "manifests"
OVERLAYS = ("kubernetes", "admission")
ZONE = "topology.kubernetes.io/zone"


def deployments(kubectl: Kubectl, image: str) -> list[Object]:
    """With their own placement, and otherwise nothing that a bare namespace lacks."""
    texts = [kubectl("kustomize", str(MANIFESTS / "overlays" / one)) for one in OVERLAYS]
    parts = [part for text in texts for part in yaml.safe_load_all(text)]
    found = [part for part in parts if part["kind"] == "Deployment"]
    assert len(found) == 2
    for each in found:
        each["metadata"]["namespace"] = kubectl.namespace
        pod = each["spec"]["template"]["spec"]
        pod.pop("serviceAccountName")
        pod.pop("volumes", None)
        pod["automountServiceAccountToken"] = False
        pod["terminationGracePeriodSeconds"] = 0
        (main,) = pod["containers"]
        kept = {name: main[name] for name in ("name", "resources", "securityContext")}
        pod["containers"] = [{**kept, "image": image, "command": ["sleep", "100000"]}]
    return found


def nodes(kubectl: Kubectl, deployment: Object) -> list[str]:
    """Where its pods are, once it is rolled out: meanwhile an old pod may be beside a new one."""
    kubectl("rollout", "status", f"deployment/{deployment['metadata']['name']}", "--timeout=120s")
    labels = deployment["spec"]["selector"]["matchLabels"]
    query = ",".join(f"{name}={value}" for name, value in labels.items())
    placed: list[str] = []

    def all_placed() -> bool:
        found = json.loads(kubectl("get", "pods", f"--selector={query}", "-o", "json"))["items"]
        alive = [p for p in found if "deletionTimestamp" not in p["metadata"]]
        placed[:] = [p["spec"]["nodeName"] for p in alive if p["spec"].get("nodeName")]
        return len(placed) == len(alive) == 2

    eventually("two pods with nodes", all_placed, 120)
    return placed


def apart(kubectl: Kubectl, made: list[Object], rounds: int) -> None:
    """Whether the two replicas of each are on two nodes, time after time, updates included."""
    kubectl.apply(*made)
    for number in range(rounds):
        for each in made:
            assert len(set(nodes(kubectl, each))) == 2, each["metadata"]["name"]
            name = f"deployment/{each['metadata']['name']}"
            mark = {"spec": {"template": {"metadata": {"annotations": {"round": str(number)}}}}}
            kubectl("patch", name, "--type=merge", "-p", json.dumps(mark))
