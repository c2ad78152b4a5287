"""What runs on a cluster beside Kubernetes itself, each by its name.

An add-on is images to load, objects to apply and Deployments to wait for. Most run as pods from
their own published YAML. Some do not: the network policy enforcer is part of a node, KWOK, which
plays nodes, must also work where no real node is, and gang schedulers run beside the first.
"""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tools.cluster import gangs, published
from tools.cluster.addresses import Port
from tools.cluster.build import Built
from tools.cluster.images import Recipe, full_reference, pack
from tools.cluster.paths import cache_root, content_hash
from tools.cluster.processes import run
from tools.cluster.spec import Spec

_MANIFESTS: Final = Path(__file__).parent / "manifests"
_NOBODY: Final = "65532:65532"


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """What one add-on brings to a cluster."""

    objects: Path | None = None
    images: tuple[Path, ...] = ()
    deployments: tuple[tuple[str, str], ...] = ()
    """namespace and name of what must be available before the add-on counts as ready"""


def installation(spec: Spec, name: str, built: dict[str, Built]) -> Installation:
    """What to load, apply and wait for. Packs images and renders manifests on first use."""
    if name in published.PUBLISHED:
        return _published(published.PUBLISHED[name], built)
    if name == "dns":
        return _dns(spec, built)
    if name == "scc":
        return Installation(objects=_template(spec, "scc.yaml"))
    if name in gangs.DEFINITIONS:
        return Installation(objects=built[name].source / gangs.DEFINITIONS[name])
    return Installation()


def archive(recipe: Recipe) -> Path:
    """The recipe's image archive, packed on first use."""
    stamps = [(path, source) for path, source in sorted(recipe.files.items())]
    key = content_hash(full_reference(recipe.name), recipe.user, recipe.entrypoint, stamps)
    short = recipe.name.rpartition("/")[2].partition(":")[0]
    target = cache_root() / "images" / f"{short}-{key}.tar"
    if not target.exists():
        pack(recipe, target)
    return target


def program_image(name: str, program: Path, path: str, user: str = _NOBODY) -> Path:
    """An image that holds one program and nothing else."""
    files = {path: str(program)}
    return archive(Recipe(name=name, files=files, entrypoint=(path,), user=user))


def kwok_config(spec: Spec, source: Path, kubectl: Path) -> list[dict[str, Any]]:
    """KWOK's configuration: its own published stages, with our idea of when a pod completes.

    The published stage ends every pod of any Job at once, a JobSet's workers too; ours ends
    launchers only, after a while.
    """
    stages = yaml.safe_load_all(run([str(kubectl), "kustomize", f"{source}/kustomize/stage/fast"]))
    kept = [stage for stage in stages if stage["metadata"]["name"] != "pod-complete"]
    options = {
        "manageNodesWithLabelSelector": "type=kwok",
        "cidr": spec.addresses.fake_pods,
        "nodeIP": spec.addresses.control,
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 4,
        "serverAddress": f"127.0.0.1:{spec.addresses.port(Port.KWOK)}",
    }
    head = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": options,
    }
    ours = yaml.safe_load_all((_MANIFESTS / "kwok-stages.yaml").read_text())
    return [head, *kept, *ours]


def fake_node(spec: Spec, index: int) -> dict[str, Any]:
    """A node that only KWOK plays. Beside real nodes it is tainted: nothing real may land there."""
    taint = {"key": "kwok", "value": "fake", "effect": "NoSchedule"}
    size = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    name = f"fake{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "type": "kwok",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [taint]} if spec.real_nodes else {},
        "status": {"allocatable": size, "capacity": size},
    }


def _dns(spec: Spec, built: dict[str, Built]) -> Installation:
    # As root, with one capability: port 53 is below 1024.
    image = program_image("localhost/coredns:1", built["coredns"].bin / "coredns", "/coredns", "0")
    return Installation(
        objects=_template(spec, "coredns.yaml"),
        images=(image,),
        deployments=(("kube-system", "coredns"),),
    )


def _published(what: published.Published, built: dict[str, Built]) -> Installation:
    component = built[what.component]
    kubectl = built["kubectl"].bin / "kubectl"
    version = (str(component.source), what.version)
    objects = published.cached(
        what.component, version, lambda: published.rendered(kubectl, component.source, what)
    )
    items = json.loads(objects.read_text())["items"]
    (image,) = set(published.images_of(items))
    return Installation(
        objects=objects,
        images=(program_image(image, component.bin / what.program, "/manager"),),
        deployments=tuple(
            (item["metadata"]["namespace"], item["metadata"]["name"])
            for item in items
            if item["kind"] == "Deployment"
        ),
    )


def _template(spec: Spec, file: str) -> Path:
    text = string.Template((_MANIFESTS / file).read_text())
    target = spec.state / file
    target.write_text(text.substitute(DNS_SERVICE=spec.addresses.dns_service))
    return target
