"""The images in `images/`, built as users build them, and kept as archives by content hash.

buildah runs the Containerfiles with chroot isolation, over a base that debootstrap makes and that
takes the public base's name, so no registry is asked. Its storage is our own directory.
Danger: the base holds what the Debian mirror served on the day it was made; delete it from
the cache to get newer packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from mpi_trainer import __version__
from tools import imagebases
from tools.cluster import debian
from tools.cluster.errors import ClusterError
from tools.cluster.lock import locked
from tools.cluster.paths import RUN, cache_root, content_hash
from tools.cluster.progress import say

_PROJECT: Final = Path(__file__).parents[2]
_SOURCE: Final = _PROJECT / "images"
# By its tag: debootstrap's has no digest that anybody published.
_PUBLIC_BASE: Final = imagebases.read()["DEBIAN"].tagged
_BASE_RECIPE: Final = ("bookworm", "minbase", 1)
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


class UserImage(msgspec.Struct, frozen=True):
    """One Containerfile and the image that it makes."""

    directory: str
    reference: str
    parent: str = "mpi-base"
    sources: tuple[str, ...] = ()
    """what of the project goes in beside the directory; the build context is then the project"""
    on_demand: bool = False
    """built where it is asked for by name only: large, and nothing that CI runs needs it"""


MPI_BASE: Final = UserImage("mpi-base", "localhost/mpi-base:bookworm", "")
USER_IMAGES: Final = {
    image.directory: image
    for image in (
        MPI_BASE,
        UserImage("mpi-openmpi", "localhost/mpi-openmpi:4.1"),
        UserImage("mpi-openmpi5", "localhost/mpi-openmpi:5.0"),
        UserImage("mpi-mpich", "localhost/mpi-mpich:5.0"),
        UserImage("mpi-intel", "localhost/mpi-intel:2021.18"),
        UserImage("mpi-torch", "localhost/mpi-torch:1.13", on_demand=True),
        UserImage(
            "mpi-trainer",
            f"localhost/mpi-trainer:{__version__}",
            parent="",
            sources=("requirements/controller.txt", "src/mpi_trainer"),
        ),
        UserImage(
            "mpi-initializer",
            f"localhost/mpi-initializer:{__version__}",
            parent="",
            sources=(
                "requirements/initializers.txt",
                "src/mpi_trainer/__init__.py",
                "src/mpi_trainer/initializers",
            ),
            on_demand=True,
        ),
    )
}


def image_key(image: UserImage) -> str:
    """Names one build: every file that goes in, and what it is built on."""
    below = image_key(USER_IMAGES[image.parent]) if image.parent else content_hash(_BASE_RECIPE)
    directory = _SOURCE / image.directory
    content = [(path.name, content_hash(path.read_bytes())) for path in _files(directory)]
    inside = [
        (str(path.relative_to(_PROJECT)), content_hash(path.read_bytes()))
        for source in image.sources
        for path in _files(_PROJECT / source)
    ]
    parts = (image.reference, below, content)
    return content_hash(*parts, inside) if inside else content_hash(*parts)


def _files(source: Path) -> list[Path]:
    """The file itself, or all files below the directory but compiled ones."""
    if source.is_file():
        return [source]
    found = (path for path in source.rglob("*") if path.is_file())
    return sorted(path for path in found if path.parent.name != "__pycache__")


def archive_of(image: UserImage) -> Path:
    """Where the built image's archive lies, or will lie."""
    return cache_root() / "images" / f"{image.directory}-{image_key(image)}.tar"


def build_image(image: UserImage) -> Path:
    """The image's archive, built on first use together with what it needs."""
    target = archive_of(image)
    if target.exists():
        return target
    debian.require(debian.IMAGE_PROGRAMS)
    with locked(cache_root() / "locks" / "images", f"building {image.directory}"):
        if not target.exists():
            try:
                _export(image, _stored_as(image), target)
            finally:
                _unmount()
    return target


def _tag(image: UserImage) -> str:
    """A name that changes with the content, so that a stale image is never taken for ours."""
    return f"localhost/built/{image.directory}:{image_key(image)}"


def _stored_as(image: UserImage) -> str:
    """Build the image into buildah's storage, after what it is built on; its tag there.

    The tag is asked for once: sources may change while an image is built.
    """
    tag = _tag(image)
    if _stored(tag):
        return tag
    if image.parent:
        below = USER_IMAGES[image.parent]
        _buildah("tag", _stored_as(below), below.reference)
    else:
        _ensure_public_base()
    say(image.directory, "build")
    # What our own sources go into is built often: its steps before them are kept.
    layers = f"--layers={'true' if image.sources else 'false'}"
    options = ["--isolation=chroot", "--pull-never", layers, "--format=docker"]
    if _CERTIFICATES.exists():
        # Package registries behind a company's own certificate authority work in builds too.
        inside = "/run/build-certificates.crt"
        options += [f"--volume={_CERTIFICATES}:{inside}:ro", f"--build-arg=PIP_CERT={inside}"]
    if not image.parent:
        options += [f"--build-arg=DEBIAN={_PUBLIC_BASE}"]
    directory = _SOURCE / image.directory
    context = _PROJECT if image.sources else directory
    recipe = f"--file={directory / 'Containerfile'}"
    _buildah("bud", *options, recipe, f"--tag={tag}", str(context))
    return tag


def _export(image: UserImage, tag: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    _buildah("push", tag, f"docker-archive:{partial}:{image.reference}")
    partial.rename(target)
    say(image.directory, f"{target.stat().st_size >> 20} MiB at {target}")


def _ensure_public_base() -> None:
    if _stored(_PUBLIC_BASE):
        return
    suite, variant, _ = _BASE_RECIPE
    say("base image", f"debootstrap {suite}")
    with tempfile.TemporaryDirectory(dir=_directory()) as scratch:
        root = Path(scratch) / "root"
        log = Path(scratch) / "log"
        _logged(["debootstrap", f"--variant={variant}", str(suite), str(root)], log)
        for junk in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man",
                     "usr/share/locale", "var/log"):  # fmt: skip
            shutil.rmtree(root / junk, ignore_errors=True)
            (root / junk).mkdir(parents=True)
        sources = Path("/etc/apt/sources.list.d/debian.sources")
        if sources.exists():
            shutil.copy(sources, root / "etc/apt/sources.list.d/")
            (root / "etc/apt/sources.list").unlink(missing_ok=True)
        container = _buildah("from", "scratch").strip()
        _buildah("add", "--quiet", container, str(root), "/")
        _buildah("config", "--cmd=/bin/sh", container)
        _buildah("commit", "--quiet", "--rm", container, _PUBLIC_BASE)


def _unmount() -> None:
    """buildah leaves its storage mounted onto itself; it mounts it again when needed."""
    own = f" {_directory()}/"
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        if own in line:
            subprocess.run(["umount", "-l", line.split()[1]], check=False)
    shutil.rmtree(_runroot(), ignore_errors=True)


def _logged(command: list[str], log: Path) -> None:
    with log.open("wb") as output:
        code = subprocess.run(command, stdout=output, stderr=output, check=False).returncode
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise ClusterError(f"`{command[0]}` failed:\n{tail}")


def _stored(reference: str) -> bool:
    command = [*_command(), "inspect", "--type=image", reference]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _buildah(*arguments: str) -> str:
    answer = subprocess.run([*_command(), *arguments], capture_output=True, text=True, check=False)
    if answer.returncode:
        tail = "\n".join((answer.stdout + answer.stderr).splitlines()[-25:])
        raise ClusterError(f"`buildah {arguments[0]}` failed:\n{tail}")
    return answer.stdout


def _command() -> list[str]:
    directory = _directory()
    return [
        "buildah",
        f"--root={directory}/storage",
        f"--runroot={_runroot()}",
        "--storage-driver=overlay",
    ]


def _directory() -> Path:
    directory = cache_root() / "buildah"
    directory.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("BUILDAH_ISOLATION", "chroot")
    return directory


def _runroot() -> Path:
    """buildah's volatile files: of this cache alone, since we delete them afterwards."""
    return RUN / f"buildah-{content_hash(str(cache_root()))}"
