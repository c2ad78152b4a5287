"""Image archives packed from files."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

from tools.cluster.images import Recipe, full_reference, pack


def _recipe(directory: Path) -> Recipe:
    program = directory / "program"
    program.write_bytes(b"#!/bin/true\n")
    return Recipe(
        name="example.com/team/program:v1",
        files={"/usr/bin/program": str(program)},
        entrypoint=("/usr/bin/program",),
    )


def _members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        files = [(entry.name, tar.extractfile(entry)) for entry in tar.getmembers()]
        return {name: file.read() for name, file in files if file}


def test_every_blob_is_named_by_its_own_hash(tmp_path: Path) -> None:
    pack(_recipe(tmp_path), tmp_path / "image.tar")
    blobs = {n: d for n, d in _members(tmp_path / "image.tar").items() if n.startswith("blobs/")}
    assert len(blobs) == 3
    for name, data in blobs.items():
        assert name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}"


def test_the_image_keeps_its_full_name_and_user(tmp_path: Path) -> None:
    pack(_recipe(tmp_path), tmp_path / "image.tar")
    members = _members(tmp_path / "image.tar")
    (manifest,) = json.loads(members["index.json"])["manifests"]
    name = manifest["annotations"]["io.containerd.image.name"]
    assert name == "example.com/team/program:v1"
    config = json.loads(members["blobs/sha256/" + _config_digest(members, manifest)])
    assert config["config"]["User"] == "65532:65532"


def test_the_layer_holds_the_program_its_directories_and_tmp(tmp_path: Path) -> None:
    pack(_recipe(tmp_path), tmp_path / "image.tar")
    members = _members(tmp_path / "image.tar")
    layer = max(
        (name for name in members if name.startswith("blobs/")), key=lambda n: len(members[n])
    )
    (tmp_path / "layer.tar").write_bytes(members[layer])
    with tarfile.open(tmp_path / "layer.tar") as tar:
        modes = {entry.name: entry.mode for entry in tar.getmembers()}
    assert modes == {"tmp": 0o1777, "usr": 0o755, "usr/bin": 0o755, "usr/bin/program": 0o755}


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path)
    pack(recipe, tmp_path / "one.tar")
    pack(recipe, tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def _config_digest(members: dict[str, bytes], manifest: dict[str, str]) -> str:
    document = json.loads(members["blobs/sha256/" + manifest["digest"].removeprefix("sha256:")])
    digest: str = document["config"]["digest"]
    return digest.removeprefix("sha256:")


def test_short_names_are_those_of_docker_io() -> None:
    assert full_reference("team/program:1") == "docker.io/team/program:1"
    for name in ("localhost/pause:1", "example.com/program:1", "registry:5000/program:1"):
        assert full_reference(name) == name
