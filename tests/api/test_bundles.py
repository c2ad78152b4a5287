"""What `odh install` and an operator apply is what the manifests say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tools import bundles
from tools.cluster.build import build
from tools.cluster.components import KUBECTL
from tools.cluster.user_images import USER_IMAGES


def test_bundles_are_those_that_kustomize_makes_of_the_manifests() -> None:
    assert bundles.stale() == []


def test_every_folder_that_is_applied_can_be_built() -> None:
    files = sorted(bundles.MANIFESTS.rglob("kustomization.yaml"))
    assert len(files) > 10
    for file in files:
        built(file.parent)  # raises where kustomize refuses; a component alone is empty


def test_the_operators_image_and_namespace_are_taken(tmp_path: Path) -> None:
    """OPS-1: as Open Data Hub's operator does it: it writes params.env, then builds the folder."""
    folder = tmp_path / "manifests"
    shutil.copytree(bundles.MANIFESTS, folder)
    params = folder / "rhoai/params.env"
    (line,) = params.read_text().splitlines()
    name, _, image = line.partition("=")
    assert image == USER_IMAGES["mpi-trainer"].reference
    params.write_text(f"{name}=quay.io/opendatahub/mpi-trainer@sha256:{'0' * 64}\n")
    text = (folder / "rhoai/kustomization.yaml").read_text()
    assert "- ../crds\n" in text
    # The definitions are large and have neither namespace nor image.
    other = text.replace("namespace: opendatahub", "namespace: redhat-ods-applications")
    other = other.replace("- ../crds\n", "")
    (folder / "rhoai/kustomization.yaml").write_text(other)
    made = built(folder / "rhoai")
    assert image_of(made) == f"quay.io/opendatahub/mpi-trainer@sha256:{'0' * 64}"
    namespaces = {one["metadata"].get("namespace", "redhat-ods-applications") for one in made}
    assert namespaces == {"redhat-ods-applications"}
    accounts = [one for one in made if one["kind"].endswith("RoleBinding")]
    assert {s["namespace"] for one in accounts for s in one["subjects"] if "namespace" in s} == {
        "redhat-ods-applications"
    }
    assert "Namespace" not in {one["kind"] for one in made}, "the operator's own, which it keeps"


def built(folder: Path) -> list[dict[str, Any]]:
    kubectl = build([KUBECTL])["kubectl"].bin / "kubectl"
    command = [str(kubectl), "kustomize", str(folder)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def image_of(objects: list[dict[str, Any]]) -> str:
    (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    image: str = container["image"]
    return image
