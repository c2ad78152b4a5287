"""S-16: no recipe begins with an image that may be another one tomorrow, but through one list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import imagebases

ROOT = Path(__file__).parents[3]
RECIPES = sorted(ROOT.glob("images/*/Containerfile"))
DIGEST = "sha256:" + "0" * 64
PUBLIC_BY_TAG = {
    "docker.io/horovod/horovod:0.28.1",
    "quay.io/opendatahub/odh-training-cuda130-torch210-py312-openmpi41:odh-stable",
    "quay.io/opendatahub/odh-training-cuda128-torch28-py312-rhel9:odh-stable",
}
"""of the runtimes: the same images, by the same tags, as Open Data Hub and Kubeflow name"""


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: str(path.parent.name))
def test_a_recipe_begins_with_ours_or_with_what_the_list_names(recipe: Path) -> None:
    text = recipe.read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE)
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    listed = {f"${{{name}}}" for name in imagebases.read()}
    for base in bases:
        ours = re.fullmatch(r"localhost/[a-z0-9-]+:(?!latest$)\S+", base)
        assert ours or base in listed or base in stages, f"{base}: name it in images/bases.env"
    for argument in re.findall(r"^ARG ([A-Z]+)$", text, re.MULTILINE):
        assert argument in imagebases.read()


def test_the_list_names_tags_that_mean_something() -> None:
    assert imagebases.read()
    for base in imagebases.read().values():
        assert not base.tagged.endswith(":latest")


@pytest.mark.parametrize(
    "line", ["A=debian", "A=docker.io/library/debian", "A=docker.io/library/debian:12@sha256:12"]
)
def test_a_line_without_a_tag_or_with_half_a_digest_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not NAME="):
        imagebases.read(line)


def test_digests_are_written_behind_the_tags_and_renewed() -> None:
    text = "# why\nA=r.io/a/b:1\n"
    once = imagebases.pinned(text, lambda tagged: DIGEST)
    assert once == f"# why\nA=r.io/a/b:1@{DIGEST}\n"
    assert imagebases.read(once)["A"].tagged == "r.io/a/b:1"
    other = DIGEST.replace("0", "1")
    assert imagebases.pinned(once, lambda tagged: other) == once.replace(DIGEST, other)


def images(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["image"]] if isinstance(value.get("image"), str) else []
        return own + [image for each in value.values() for image in images(each)]
    return [image for each in value for image in images(each)] if isinstance(value, list) else []


def test_manifests_name_no_image_without_a_version() -> None:
    folders = ("examples", "manifests", "src/mpi_trainer/local/runtimes")
    found = [f for folder in folders for f in (ROOT / folder).rglob("*.yaml")]
    files = [f for f in found if f.parent.name != "crds"]
    named = {i for f in files for each in yaml.safe_load_all(f.read_text()) for i in images(each)}
    assert named
    for image in named - PUBLIC_BY_TAG - {"mpi-trainer"}:  # that one is kustomize's to replace
        assert re.fullmatch(r"localhost/[a-z0-9-]+:(?!latest$)\S+", image) or "@sha256:" in image
