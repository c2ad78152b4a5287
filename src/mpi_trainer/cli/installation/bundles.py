"""What is installed: the objects of `manifests/`, rendered once and shipped with `odh`.

`python -m tools.bundles` renders them; the definitions are the files of `manifests/crds`
themselves. Nothing is fetched when they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from mpi_trainer.api.errors import ExplainedError

Object = dict[str, Any]
HERE: Final = Path(__file__).parent
FOLDER: Final = HERE / "bundles"
KUBERNETES, OPENSHIFT = "kubernetes", "openshift"
PROFILES: Final = (KUBERNETES, OPENSHIFT)
ADMISSION, OLDER_ADMISSION = "admission", "admission-before-1.30"
RUNTIMES, RELEASE = "runtimes", "release"
SOURCES: Final[Mapping[str, str]] = {
    **{name: f"overlays/{name}" for name in (*PROFILES, ADMISSION, OLDER_ADMISSION)},
    RUNTIMES: "runtimes",
    RELEASE: "release",
}
"""bundle -> the folder of `manifests` that it is rendered from"""
_CRDS: Final = (HERE / "crds", HERE.parents[3] / "manifests/crds")
"""in a wheel; in the project's own folder"""
_LOCAL: Final = "localhost"


def definitions() -> list[Object]:
    """MPIJobs, TrainJobs and runtimes."""
    folder = next((one for one in _CRDS if one.is_dir()), None)
    if folder is None:
        raise ExplainedError(
            "this installation of odh lacks the definitions of the kinds", "Install it again."
        )
    files = sorted(one for one in folder.glob("*.yaml") if one.name != "kustomization.yaml")
    return [found for file in files for found in _read(file)]


def bundle(name: str) -> list[Object]:
    return _read(FOLDER / f"{name}.yaml")


def _read(file: Path) -> list[Object]:
    return [one for one in yaml.load_all(file.read_text(), yaml.CSafeLoader) if one]


class Image(msgspec.Struct, frozen=True):
    """`for_what` names the bundles that use it; `pinned` is whether it says a digest."""

    image: str
    for_what: tuple[str, ...]
    pinned: bool
    built: bool
    """whether you build it yourself from `images/`, because no registry has it"""
    mirror: str = ""


def images(names: Sequence[str], registry: str = "") -> list[Image]:
    """Each once, as it is named in the bundles, and where it is in a mirror."""
    found: dict[str, list[str]] = {}
    for name in names:
        for container in _containers(bundle(name)):
            users = found.setdefault(container["image"], [])
            if name not in users:
                users.append(name)
    return [
        Image(
            image,
            tuple(users),
            "@sha256:" in image,
            image.startswith(f"{_LOCAL}/"),
            mirrored(image, registry) if registry else "",
        )
        for image, users in sorted(found.items())
    ]


def mirrored(image: str, registry: str) -> str:
    """The same image in a mirror: what stands for the registry is replaced, all else stays."""
    first, _, rest = image.partition("/")
    known = bool(rest) and ("." in first or ":" in first or first == _LOCAL)
    return f"{registry.rstrip('/')}/{rest if known else image}"


def with_images(objects: Sequence[Object], registry: str) -> list[Object]:
    """The objects with every image taken from this registry."""
    made: list[Object] = msgspec.json.decode(msgspec.json.encode(objects))
    for container in _containers(made) if registry else ():
        container["image"] = mirrored(container["image"], registry)
    return made


def _containers(value: Any) -> Iterator[Object]:
    if isinstance(value, dict):
        if isinstance(value.get("image"), str) and "name" in value:
            yield value
        for each in value.values():
            yield from _containers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _containers(each)
