"""Go programs from pinned modules, built once for each content hash.

A finished build appears by one rename, so an interrupted one leaves nothing that looks done;
Go's own build cache makes the next try continue where it stopped. The module is downloaded at
its exact version and checked against our hash, then copied and built as the main module with
its own go.sum and `-mod=readonly`: no version list and no checksum database is ever asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from tools.cluster.compiling import compiled
from tools.cluster.components import Component
from tools.cluster.errors import ClusterError
from tools.cluster.gomod import merged_gosum, released_gomod
from tools.cluster.lock import locked
from tools.cluster.paths import cache_root, content_hash
from tools.cluster.progress import say

_FLAGS: Final = ("-trimpath", "-buildvcs=false", "-mod=readonly")
_SUMS: Final = Path(__file__).parent / "sums"
_OVERLAYS: Final = Path(__file__).parent / "overlays"
# Debug tables, which the linker drops anyway, are a sixth of the work. The programs are the same
# with and without, so this is no part of a build's name.
_QUICKER: Final = ("-gcflags=all=-dwarf=false",)
# A seventh of the compiler's work is its own garbage collection; it starts once that much is held.
_FEWER_COLLECTIONS: Final = {"GOGC": "off", "GOMEMLIMIT": "1GiB"}


class Built(msgspec.Struct, frozen=True):
    """Where a component's programs and its module's files lie."""

    bin: Path
    source: Path


class _Download(msgspec.Struct, frozen=True, rename="pascal"):
    dir: str = ""
    sum: str = ""
    error: str = ""


def extra_sums(component: Component) -> str:
    """The committed hashes of modules that the component's own go.sum does not list."""
    module = component.module.split("/")[-1]
    names = (f"{module}-{component.version}", component.name, module)
    found = (path for name in names if (path := _SUMS / f"{name}.sum").exists())
    return next((path.read_text() for path in found), "")


def overlay(component: Component) -> dict[str, bytes]:
    """Files that take the place of the module's own: path in the module -> content."""
    root = _OVERLAYS / component.name
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def build_key(component: Component, go_version: str) -> str:
    """Names one build: what goes in, with which compiler and flags."""
    parts = (component, extra_sums(component), go_version, _FLAGS)
    changed = overlay(component)
    return content_hash(*parts, changed) if changed else content_hash(*parts)


def build(components: Iterable[Component]) -> dict[str, Built]:
    """Build what is not there yet; where each component lies, by name.

    Components of one module go one after the other, so that nothing is compiled twice; two
    modules at a time, so that one compiles while the other downloads or links.
    """
    version = _go_version()
    lanes: dict[str, list[Component]] = {}
    for component in components:
        lanes.setdefault(component.module, []).append(component)

    def build_lane(lane: list[Component]) -> list[Built]:
        return [_build_one(component, version) for component in lane]

    # The first alone: it compiles the standard library for all the others.
    first, *others = lanes.values()
    built = build_lane(first)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for places in pool.map(build_lane, others):
            built += places
    ordered = [component for lane in lanes.values() for component in lane]
    return {component.name: place for component, place in zip(ordered, built, strict=True)}


def _build_one(component: Component, go_version: str) -> Built:
    key = build_key(component, go_version)
    target = cache_root() / "bin" / f"{component.name}-{component.version}-{key}"
    source = source_of(component)
    if not target.exists():
        # Not before: nobody who has all parts may wait for another's build.
        with locked(cache_root() / "locks" / f"build-{target.name}", f"building {component.name}"):
            if not target.exists():
                _compile(component, source, target)
    return Built(bin=target, source=source)


def source_of(component: Component) -> Path:
    """The module's files, ready to build; downloaded on first use."""
    extra = extra_sums(component)
    recipe = (component.module, component.version, component.sum, component.zero_version)
    changed = overlay(component)
    parts = (recipe, component.replaces, extra)
    key = content_hash(*parts, changed) if changed else content_hash(*parts)
    name = component.module.replace("/", "_")
    target = cache_root() / "src" / f"{name}@{component.version}-{key}"
    if target.exists():
        return target
    with locked(cache_root() / "locks" / f"source-{name}", f"fetching {component.module}"):
        if target.exists():
            return target
        say(component.name, f"download {component.module}@{component.version}")
        fetched = _download(component)
        with _staging(target) as staging:
            shutil.copytree(fetched, staging, dirs_exist_ok=True)
            for path in (staging, *staging.rglob("*")):
                path.chmod(path.stat().st_mode | 0o200)
            gomod, gosum = staging / "go.mod", staging / "go.sum"
            gomod.write_text(
                released_gomod(gomod.read_text(), component.zero_version, component.replaces)
            )
            gosum.write_text(merged_gosum(gosum.read_text(), extra))
            for name_inside, content in changed.items():
                (staging / name_inside).write_bytes(content)
            staging.rename(target)
    return target


def _download(component: Component) -> Path:
    with tempfile.TemporaryDirectory() as empty:
        answer = subprocess.run(
            ["go", "mod", "download", "-json", f"{component.module}@{component.version}"],
            cwd=empty,
            env=_go_env({"GOFLAGS": "-mod=mod", "GONOSUMDB": "*"}),
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        found = msgspec.json.decode(answer.stdout, type=_Download)
    except msgspec.DecodeError:
        found = _Download(error=answer.stderr.strip())
    if found.error:
        raise ClusterError(
            f"{component.module}@{component.version} could not be downloaded: {found.error}",
            "Check that the Go module proxy can be reached (`go env GOPROXY`).",
        )
    if found.sum != component.sum:
        raise ClusterError(
            f"{component.module}@{component.version} has the hash {found.sum}, not {component.sum}",
            "Do not use this copy: find out which of the two is the published one.",
        )
    return Path(found.dir)


def _compile(component: Component, source: Path, target: Path) -> None:
    stamps = [f"-X {variable}={value}" for variable, value in component.stamps.items()]
    with _staging(target) as staging:
        # What else runs here, tests above all, has deadlines; a build has none.
        command = ["nice", "-n", "10", "go", "build", "-v", *_FLAGS, *_QUICKER]
        command += [f"-ldflags={' '.join(['-s', '-w', *stamps])}"]
        command += ["-o", f"{staging}/", *component.programs.values()]
        own = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", **_FEWER_COLLECTIONS}
        env = _go_env(own)
        figures = compiled(component.name, command, source, env, staging / "build.log")
        _name_programs(component, staging)
        (staging / "build.json").write_bytes(msgspec.json.encode(figures))
        staging.rename(target)
    say(component.name, f"built in {figures.seconds} s, {figures.cpu_seconds} s of CPU")


def _name_programs(component: Component, directory: Path) -> None:
    """Go names a program after its directory or module; we name it after the component's list."""
    for program, package in component.programs.items():
        default = package.rpartition("/")[2]
        if default == ".":
            parts = component.module.split("/")
            default = (
                parts[-2] if parts[-1].startswith("v") and parts[-1][1:].isdigit() else parts[-1]
            )
        if default != program:
            (directory / default).rename(directory / program)


class _staging:  # noqa: N801 - a context manager used like a function
    """An empty directory beside `target`, removed unless it was renamed away.

    The caller holds the target's lock, so what a killed run left of it can go too.
    """

    def __init__(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stale in target.parent.glob(f".{target.name}-*"):
            shutil.rmtree(stale, ignore_errors=True)
        self._path = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        self._path.chmod(0o755)

    def __enter__(self) -> Path:
        return self._path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


def _go_env(own: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "GOTOOLCHAIN": "local", **own}


def _go_version() -> str:
    try:
        answer = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True)
    except FileNotFoundError:
        raise ClusterError("`go` is not installed", "Install Go 1.26 or newer.") from None
    version = answer.stdout.strip()
    numbers = version.removeprefix("go").split("-")[0].split(".")
    if tuple(int(n) for n in numbers[:2]) < (1, 26):
        raise ClusterError(f"Go is {version}", "Install Go 1.26 or newer: Kueue needs it.")
    return version
