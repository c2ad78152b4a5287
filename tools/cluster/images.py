"""Container images without a registry: packed from files, loaded into the nodes' containerd.

`pack` writes a one-layer OCI archive; equal input gives equal bytes. `load` gives archives to every
node without unpacking them: a node unpacks an image only when a pod there first needs it. Layers
that several have in common are taken in once, which is most of the work.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from tools.cluster.node import socket
from tools.cluster.processes import run
from tools.cluster.spec import Spec

_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TYPE: Final = "application/vnd.oci.image"
_MANIFEST: Final = "manifest.json"
_HASHED: Final = re.compile(r"[0-9a-f]{64}\.(tar|json)")


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A small image made of a few files."""

    name: str
    files: dict[str, str]
    """path in the image -> file on this machine; all are made executable"""
    entrypoint: tuple[str, ...]
    user: str = "65532:65532"


def full_reference(name: str) -> str:
    """The name under which a kubelet looks an image up: short names belong to docker.io."""
    registry = name.partition("/")[0]
    if "." in registry or ":" in registry or registry == "localhost":
        return name
    return f"docker.io/{name}"


def layer(files: Mapping[str, str], output: Path) -> None:
    """Write the image's only layer: the files, their directories and an empty /tmp."""
    with tarfile.open(output, "w") as tar:
        _add_directory(tar, "tmp", 0o1777)
        for directory in sorted({d for path in files for d in _parents(path)}):
            _add_directory(tar, directory, 0o755)
        for path, source in sorted(files.items()):
            entry = tarfile.TarInfo(path.strip("/"))
            entry.mode, entry.size = 0o755, Path(source).stat().st_size
            with Path(source).open("rb") as file:
                tar.addfile(entry, file)


def pack(recipe: Recipe, archive: Path) -> None:
    """Write the OCI archive of a recipe; it appears complete or not at all."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        blob = Path(scratch) / "layer.tar"
        layer(recipe.files, blob)
        with blob.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        documents = _documents(recipe, digest, blob.stat().st_size)
        partial = Path(scratch) / "image.tar"
        with tarfile.open(partial, "w") as tar:
            for path, data in documents.items():
                _add_file(tar, path, data)
            entry = tarfile.TarInfo(f"blobs/sha256/{digest}")
            entry.size = blob.stat().st_size
            with blob.open("rb") as file:
                tar.addfile(entry, file)
        partial.rename(archive)


def load(spec: Spec, archives: list[Path]) -> None:
    """Give archives to the containerd of every node, all nodes at once."""
    with tempfile.TemporaryDirectory(dir=spec.state) as scratch:
        whole = together(archives, Path(scratch) / "together.tar")

        def load_one(index: int) -> None:
            address = socket(spec, spec.addresses.node(index))
            for archive in whole:
                run(
                    ["ctr", f"--address={address}", "--namespace=k8s.io", "images", "import",
                     "--no-unpack", str(archive)],
                    seconds=300,
                )  # fmt: skip

        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(load_one, range(1, spec.real_nodes + 1)))


def together(archives: list[Path], target: Path) -> list[Path]:
    """The archives, those in Docker's form as one with each layer once.

    Only where every file is named by its hash: else one name may stand for two things.
    """
    described = {archive: _described(archive) for archive in archives}
    alike = [archive for archive in archives if described[archive]]
    if len(alike) < 2:
        return archives
    written: set[str] = set()
    with tarfile.open(target, "w") as tar:
        for archive in alike:
            with tarfile.open(archive) as source:
                for image in described[archive]:
                    for name in _files(image):
                        if name not in written:
                            tar.addfile(source.getmember(name), source.extractfile(name))
                            written.add(name)
        _add_file(tar, _MANIFEST, _encoded([i for one in alike for i in described[one]]))
    return [*(archive for archive in archives if not described[archive]), target]


def _described(archive: Path) -> list[dict[str, Any]]:
    """What an archive in Docker's form says of its images; empty for another form."""
    with tarfile.open(archive) as tar:
        if _MANIFEST not in tar.getnames():
            return []
        file = tar.extractfile(_MANIFEST)
        found: list[dict[str, Any]] = json.load(file) if file else []
    hashed = all(_HASHED.fullmatch(name) for image in found for name in _files(image))
    return found if hashed else []


def _files(image: dict[str, Any]) -> tuple[str, ...]:
    return (image["Config"], *image["Layers"])


def _documents(recipe: Recipe, layer_digest: str, layer_size: int) -> dict[str, bytes]:
    """All parts of the archive but the layer."""
    config = _encoded(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": [_PATH],
                "User": recipe.user,
                "Entrypoint": list(recipe.entrypoint),
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        }
    )
    manifest = _encoded(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": _descriptor("config.v1+json", _digest(config), len(config)),
            "layers": [_descriptor("layer.v1.tar", layer_digest, layer_size)],
        }
    )
    reference = _descriptor("manifest.v1+json", _digest(manifest), len(manifest))
    names = {"io.containerd.image.name": full_reference(recipe.name)}
    index = _encoded({"schemaVersion": 2, "manifests": [{**reference, "annotations": names}]})
    return {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": index,
        f"blobs/sha256/{_digest(config)}": config,
        f"blobs/sha256/{_digest(manifest)}": manifest,
    }


def _descriptor(kind: str, digest: str, size: int) -> dict[str, object]:
    return {"mediaType": f"{_TYPE}.{kind}", "digest": f"sha256:{digest}", "size": size}


def _encoded(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _parents(path: str) -> list[str]:
    return [str(parent) for parent in Path(path.strip("/")).parents if str(parent) != "."]


def _add_file(tar: tarfile.TarFile, path: str, data: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def _add_directory(tar: tarfile.TarFile, path: str, mode: int) -> None:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    tar.addfile(entry)
