"""Image archives packed from files."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

from tools.cluster.images import Recipe, full_reference, pack, together


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


def _docker(path: Path, tag: str, layers: dict[str, bytes]) -> Path:
    config = f"{tag.partition(':')[2]}.json"
    described = [{"Config": config, "RepoTags": [tag], "Layers": list(layers)}]
    files = {**layers, config: b"{}", "manifest.json": json.dumps(described).encode()}
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def test_what_images_have_in_common_is_loaded_once(tmp_path: Path) -> None:
    one = _docker(tmp_path / "one", "localhost/a:1", {"base.tar": b"base", "a.tar": b"a"})
    two = _docker(tmp_path / "two", "localhost/b:2", {"base.tar": b"base", "b.tar": b"b"})
    pack(_recipe(tmp_path), tmp_path / "oci")
    other, whole = together([one, tmp_path / "oci", two], tmp_path / "together")
    assert other == tmp_path / "oci"
    with tarfile.open(whole) as tar:
        assert sorted(tar.getnames()) == [
            "1.json", "2.json", "a.tar", "b.tar", "base.tar", "manifest.json"
        ]  # fmt: skip
    described = json.loads(_members(whole)["manifest.json"])
    assert [(image["RepoTags"], image["Layers"]) for image in described] == [
        (["localhost/a:1"], ["base.tar", "a.tar"]),
        (["localhost/b:2"], ["base.tar", "b.tar"]),
    ]


def test_an_archive_alone_is_loaded_as_it_is(tmp_path: Path) -> None:
    one = _docker(tmp_path / "one", "localhost/a:1", {"base.tar": b"base"})
    pack(_recipe(tmp_path), tmp_path / "oci")
    assert together([one, tmp_path / "oci"], tmp_path / "together") == [one, tmp_path / "oci"]
