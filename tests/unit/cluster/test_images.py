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


def _hashed(data: bytes, suffix: str = "tar") -> str:
    return f"{hashlib.sha256(data).hexdigest()}.{suffix}"


def _docker(path: Path, tag: str, *layers: bytes, name: str = "") -> Path:
    """An archive as buildah writes it; `name` is that of its last layer, in place of its hash."""
    config = json.dumps({"tag": tag}).encode()
    names = [_hashed(layer) for layer in layers]
    names[-1] = name or names[-1]
    files = {**dict(zip(names, layers, strict=True)), _hashed(config, "json"): config}
    described = [{"Config": _hashed(config, "json"), "RepoTags": [tag], "Layers": names}]
    with tarfile.open(path, "w") as tar:
        for file, data in {**files, "manifest.json": json.dumps(described).encode()}.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def test_what_images_have_in_common_is_loaded_once(tmp_path: Path) -> None:
    one = _docker(tmp_path / "one", "localhost/a:1", b"base", b"a")
    two = _docker(tmp_path / "two", "localhost/b:2", b"base", b"b")
    pack(_recipe(tmp_path), tmp_path / "oci")
    other, whole = together([one, tmp_path / "oci", two], tmp_path / "together")
    assert other == tmp_path / "oci"
    members = _members(whole)
    layers = {name: data for name, data in members.items() if name.endswith(".tar")}
    assert layers == {_hashed(data): data for data in (b"base", b"a", b"b")}
    described = json.loads(members["manifest.json"])
    assert [(image["RepoTags"], image["Layers"]) for image in described] == [
        (["localhost/a:1"], [_hashed(b"base"), _hashed(b"a")]),
        (["localhost/b:2"], [_hashed(b"base"), _hashed(b"b")]),
    ]
    with tarfile.open(whole) as tar:
        assert len(tar.getnames()) == len(members) == 6


def test_two_layers_of_one_name_are_not_taken_for_one(tmp_path: Path) -> None:
    one = _docker(tmp_path / "one", "localhost/a:1", b"base", b"a", name="more.tar")
    two = _docker(tmp_path / "two", "localhost/b:2", b"base", b"b", name="more.tar")
    assert together([one, two], tmp_path / "together") == [one, two]


def test_an_archive_alone_is_loaded_as_it_is(tmp_path: Path) -> None:
    one = _docker(tmp_path / "one", "localhost/a:1", b"base")
    pack(_recipe(tmp_path), tmp_path / "oci")
    assert together([one, tmp_path / "oci"], tmp_path / "together") == [one, tmp_path / "oci"]
