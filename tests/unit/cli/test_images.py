"""OPS-1: one list of all images, and the same rule for the list and for what is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from mpi_trainer.cli.installation import bundles
from mpi_trainer.cli.verbs.images import command

ROOT = Path(__file__).parents[3]
MIRROR = "registry.example.com:5000/mirror"
ALL = sorted(bundles.SOURCES)


@pytest.mark.parametrize(
    ("image", "rest"),
    [
        ("docker.io/horovod/horovod:0.28.1", "horovod/horovod:0.28.1"),
        ("quay.io/a/b@sha256:00", "a/b@sha256:00"),
        ("localhost/mpi-openmpi:4.1", "mpi-openmpi:4.1"),
        ("localhost:5000/x/y:1", "x/y:1"),
        ("horovod/horovod:1", "horovod/horovod:1"),
        ("debian:12", "debian:12"),
    ],
)
def test_only_the_registry_of_a_name_is_replaced(image: str, rest: str) -> None:
    assert bundles.mirrored(image, f"{MIRROR}/") == f"{MIRROR}/{rest}"


def test_every_image_of_the_bundles_and_the_manifests_is_listed() -> None:
    listed = {one.image for one in bundles.images(ALL)}
    text = "".join((bundles.FOLDER / f"{name}.yaml").read_text() for name in ALL)
    assert {*re.findall(r"image: (\S+)", text)} == listed
    runtimes = (ROOT / "src/mpi_trainer/local/runtimes").glob("*.yaml")
    named = {image for file in runtimes for image in re.findall(r"image: (\S+)", file.read_text())}
    assert named <= listed


@pytest.mark.parametrize("name", ALL)
def test_with_a_registry_nothing_is_taken_from_elsewhere(name: str) -> None:
    before = bundles.bundle(name)
    text = yaml.safe_dump_all(bundles.with_images(before, MIRROR))
    assert all(one.startswith(f"{MIRROR}/") for one in re.findall(r"image: (\S+)", text))
    assert bundles.with_images(before, "") == before


def test_no_two_images_have_one_place_in_the_mirror() -> None:
    found = bundles.images(ALL, MIRROR)
    assert len({one.mirror for one in found}) == len(found)


def test_the_list_is_data_on_standard_output_and_nothing_else() -> None:
    run = CliRunner()
    rows = run.invoke(command, ["list", "--registry", MIRROR]).stdout.splitlines()
    items = json.loads(run.invoke(command, ["list", "-o", "json"]).stdout)["items"]
    assert [row.split("=")[0] for row in rows] == [item["image"] for item in items]
    names = run.invoke(command, ["list", "-o", "name"])
    assert names.stdout.splitlines() == [item["image"] for item in items]
    assert "build these from images/ first" in names.stderr


def test_definitions_are_those_of_the_project() -> None:
    found = {one["metadata"]["name"] for one in bundles.definitions()}
    assert found == {
        "mpijobs.kubeflow.org",
        *(
            f"{kind}.trainer.kubeflow.org"
            for kind in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
        ),
    }
