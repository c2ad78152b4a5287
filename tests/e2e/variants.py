"""Images that differ from ours in a few files, made by adding a layer to an archive."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

Object = dict[str, Any]


class Added(msgspec.Struct, frozen=True):
    """A file of the new layer; it belongs to root."""

    content: bytes
    mode: int = 0o644


def variant(
    archive: Path, target: Path, reference: str, files: Mapping[str, Added], user: str
) -> None:
    """Write the archive of an image with these files over `archive`'s, run as `user`."""
    layer = _layer(files)
    with tarfile.open(archive) as old, tarfile.open(target, "w") as new:
        (manifest,) = json.loads(_read(old, "manifest.json"))
        config = json.loads(_read(old, manifest["Config"]))
        config["rootfs"]["diff_ids"].append(f"sha256:{hashlib.sha256(layer).hexdigest()}")
        config["config"]["User"] = user
        for name in manifest["Layers"]:
            new.addfile(old.getmember(name), old.extractfile(name))
        described = {
            "Config": "config.json",
            "RepoTags": [reference],
            "Layers": [*manifest["Layers"], "more.tar"],
        }
        _write(new, "more.tar", layer)
        _write(new, "config.json", json.dumps(config).encode())
        _write(new, "manifest.json", json.dumps([described]).encode())


def file_in(archive: Path, path: str) -> bytes:
    """The content of a file in the image, from the last layer that has it."""
    with tarfile.open(archive) as image:
        (manifest,) = json.loads(_read(image, "manifest.json"))
        for name in reversed(manifest["Layers"]):
            with tarfile.open(fileobj=image.extractfile(name)) as layer:
                if path in layer.getnames():
                    return _read(layer, path)
    raise FileNotFoundError(f"{archive.name} has no {path}")


def _layer(files: Mapping[str, Added]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path, file in files.items():
            _write(tar, path, file.content, file.mode)
    return data.getvalue()


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    found = tar.extractfile(name)
    assert found is not None, name
    return found.read()


def _write(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
