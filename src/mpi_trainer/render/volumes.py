"""The folders that a job adds to a pod: its files and keys read-only, its scratch writable.

One volume a folder and all inside it, for each costs the API server in every pod. Files come from
the job's ConfigMap or, where all jobs share them, from the agent's; keys come from the Secret; a
volume with several comes from several. Scratch folders are in
memory, since keys may be copied there and must not reach a disk, and are bounded, since memory
there counts as the container's. A file that is shown elsewhere (an overlay) is mounted by itself,
unless the template mounts something there.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TypeVar

import msgspec

from mpi_trainer.layout.hosts import CONFIG_DIR
from mpi_trainer.layout.model import File, KeyFile, PodLayout
from mpi_trainer.render import agent_scripts, names
from mpi_trainer.render.containers import main_container
from mpi_trainer.render.frame import Frame, Object
from mpi_trainer.render.secrets import KEYS

SCRATCH_SIZE = "64Mi"
SHARED_MEMORY = "/dev/shm"

T = TypeVar("T", File, KeyFile)


class Folders(msgspec.Struct, frozen=True):
    """Volumes of the pod, their mounts, and mounts that only the main container gets. Of the
    mounts those are `needed` without which nothing can be prepared."""

    volumes: tuple[Object, ...]
    mounts: tuple[Object, ...]
    overlays: tuple[Object, ...]
    needed: tuple[Object, ...]


def folders(pod: PodLayout, frame: Frame, spec: Object) -> Folders:
    """What `pod` needs beside `spec`, which is its template's."""
    taken = {volume.get("name", "") for volume in spec.get("volumes") or ()}
    volumes = []
    named: dict[str, str] = {}
    for folder, wanted, source in _sources(pod, frame):
        named[folder] = names.unused(wanted, taken)
        taken.add(named[folder])
        volumes.append({"name": named[folder], **source})
    mounts = tuple({"name": name, "mountPath": folder} for folder, name in named.items())
    used = mounted(main_container(spec, pod.container))
    needed = tuple(mount for mount in mounts if _prepares(pod, mount["mountPath"]))
    return Folders(tuple(volumes), mounts, tuple(_overlays(pod, named, used)), needed)


def _prepares(pod: PodLayout, folder: str) -> bool:
    """Whether the program that prepares the pod is there, or what it writes."""
    inside = any(word.startswith(f"{folder}/") for word in pod.prepare)
    return inside or folder in map(plain, pod.scratch)


def mounted(container: Object) -> frozenset[str]:
    """Where the container mounts something, each path in its plain form."""
    return frozenset(plain(m.get("mountPath", "")) for m in container.get("volumeMounts") or ())


# Taking paths apart was most of what rendering cost, and nearly all jobs have the same ones.
@lru_cache(1024)
def plain(path: str) -> str:
    return str(PurePosixPath(path))


@lru_cache(1024)
def folder_of(path: str) -> str:
    return str(PurePosixPath(path).parent)


@lru_cache(1024)
def inside(path: str, folder: str) -> str:
    """The path as seen from the folder."""
    return str(PurePosixPath(path).relative_to(folder))


def claimed(pod: PodLayout) -> tuple[str, ...]:
    """The folders that the job takes for itself."""
    scratch = map(plain, pod.scratch)
    return tuple(dict.fromkeys((*_folders(pod), *scratch)))


def _sources(pod: PodLayout, frame: Frame) -> Iterator[tuple[str, str, Object]]:
    """Folder, the name that its volume should have, and what the volume holds."""
    roots = _roots(_folders(pod))
    keys, files = _by_root(pod.keys, roots), _by_root(pod.files, roots)
    called = frame.names
    for folder in dict.fromkeys(roots.values()):
        secrets, texts = keys.get(folder, []), files.get(folder, [])
        name = names.label(folder)
        if not texts:
            yield folder, called.ssh_volume, {"secret": _secret(called.secret, folder, secrets)}
        elif not secrets and len({file.shared for file in texts}) == 1:
            name = called.config_volume if folder == CONFIG_DIR else name
            shown = _shown(folder, texts, frame)
            yield folder, name, {"configMap": {"name": _holder(texts[0], frame), **shown}}
        else:
            yield folder, name, {"projected": _several(folder, secrets, texts, frame)}
    for folder in map(plain, pod.scratch):
        source = {"medium": "Memory", "sizeLimit": SCRATCH_SIZE}
        yield folder, names.label(folder), {"emptyDir": source}


def _several(folder: str, keys: list[KeyFile], files: list[File], frame: Frame) -> Object:
    """One mode for all files is the volume's, and that of keys which have none of their own."""
    shown = _shown(folder, files, frame)
    mode = {"defaultMode": shown["defaultMode"]} if "defaultMode" in shown else {}
    sources: list[Object] = []
    if keys:
        sources.append({"secret": {"name": frame.names.secret, "items": _key_items(folder, keys)}})
    for name in dict.fromkeys(_holder(file, frame) for file in files):
        held = [file for file in files if _holder(file, frame) == name]
        listed = {} if mode else {"items": _items(folder, held, frame)}
        sources.append({"configMap": {"name": name, **listed}})
    return {"sources": sources, **mode}


def _holder(file: File, frame: Frame) -> str:
    """The ConfigMap that the file is in."""
    return agent_scripts.name() if file.shared else frame.names.config_map


def _key(file: File, frame: Frame) -> str:
    return posixpath.basename(file.path) if file.shared else frame.config_keys[file]


def _secret(name: str, folder: str, keys: list[KeyFile]) -> Object:
    """One mode for all is the volume's, as upstream has it."""
    modes = {key.mode for key in keys}
    if len(modes) > 1:
        return {"secretName": name, "items": _key_items(folder, keys)}
    items = _key_items(folder, [msgspec.structs.replace(key, mode=None) for key in keys])
    (mode,) = modes
    source: Object = {"secretName": name, "items": items}
    return source if mode is None else {**source, "defaultMode": mode}


def _key_items(folder: str, keys: list[KeyFile]) -> list[Object]:
    return [
        {"key": KEYS[key.part], "path": inside(key.path, folder)}
        | ({} if key.mode is None else {"mode": key.mode})
        for key in keys
    ]


def _shown(folder: str, files: list[File], frame: Frame) -> Object:
    """One by one where upstream does. A folder of one mode whose files are called as their keys are
    shows the whole ConfigMap: that is no secret from any pod, and a list would be a fifth of it."""
    modes = {file.mode for file in files}
    as_named = all(_key(file, frame) == inside(file.path, folder) for file in files)
    if folder == CONFIG_DIR or len(modes) > 1 or not as_named:
        return {"items": _items(folder, files, frame)}
    return {"defaultMode": modes.pop()}


def _items(folder: str, files: list[File], frame: Frame) -> list[Object]:
    return [{"key": _key(f, frame), "path": inside(f.path, folder), "mode": f.mode} for f in files]


def _overlays(pod: PodLayout, named: dict[str, str], used: frozenset[str]) -> Iterator[Object]:
    for overlay in pod.overlays:
        source = PurePosixPath(overlay.source)
        folder = next((f for f in map(plain, pod.scratch) if source.is_relative_to(f)), None)
        if folder is None:
            raise ValueError(f"{overlay.source} is in no scratch folder of {pod.name}")
        if plain(overlay.target) not in used:
            path = inside(overlay.source, folder)
            yield {"name": named[folder], "mountPath": overlay.target, "subPath": path}


def _folders(pod: PodLayout) -> tuple[str, ...]:
    """Where its keys and files are."""
    paths = (*(key.path for key in pod.keys), *(file.path for file in pod.files))
    return tuple(dict.fromkeys(map(folder_of, paths)))


@lru_cache(1024)
def _roots(folders: tuple[str, ...]) -> dict[str, str]:
    """Folder → the outermost of the folders that it is inside of; itself, as a rule."""
    return {
        one: min((f for f in folders if f"{one}/".startswith(f"{f}/")), key=len) for one in folders
    }


def _by_root(listed: Iterable[T], roots: dict[str, str]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for one in listed:
        found.setdefault(roots[folder_of(one.path)], []).append(one)
    return found


def add_shared_memory(spec: Object, main: Object) -> None:
    """Adds /dev/shm as large as the pod's memory to a pod spec whose container `main` runs ranks,
    where the template has none (CTL-14): container runtimes give 64 MiB, on which MPI and NCCL fail
    in obscure ways.

    There is no size of its own: kubelets then take the pod's memory limit, or the node's memory
    where it has none, and what is stored there counts against the container's limit either way. All
    containers of the pod get the same volume, because without it they would share the runtime's. A
    pod with the host's IPC has the host's /dev/shm and keeps it.
    """
    if spec.get("hostIPC") or SHARED_MEMORY in mounted(main):
        return
    volumes = spec.setdefault("volumes", [])
    name = names.unused(names.label(SHARED_MEMORY), {volume.get("name") for volume in volumes})
    volumes.append({"name": name, "emptyDir": {"medium": "Memory"}})
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        if SHARED_MEMORY not in mounted(container):
            own = container.get("volumeMounts") or []
            container["volumeMounts"] = [*own, {"name": name, "mountPath": SHARED_MEMORY}]
