"""Carries out a plan of mount operations under a staging directory and makes it the root.

Runs in the pod's first process, in a mount namespace of its own. `Step` errors name the path.
Danger: until `enter` the process still sees the host; nothing here may write to a path that is
not below the pod's scratch directory.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mpi_trainer.local.pods import syscalls
from mpi_trainer.local.pods.rootfs import Bind, Cover, Link, Made, Op, Placed, Proc, Sysfs, Tmpfs
from mpi_trainer.local.pods.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC

_ST_RELATIME: Final = 0x1000
_MS_RELATIME: Final = 1 << 21
_KEPT: Final = (  # statvfs flag, mount flag: what a remount in a user namespace must repeat
    (os.ST_NOSUID, MS_NOSUID),
    (os.ST_NODEV, MS_NODEV),
    (os.ST_NOEXEC, MS_NOEXEC),
    (os.ST_NOATIME, 1 << 10),
    (os.ST_NODIRATIME, 1 << 11),
    (_ST_RELATIME, _MS_RELATIME),
)


class Builder:
    """Applies operations below `scratch/root`; `host` translates host paths, as in `survey`."""

    def __init__(self, scratch: str, host: Callable[[str], str]) -> None:
        self._scratch = scratch
        self._root = f"{scratch}/root"
        self._host = host
        self._count = 0

    def build(self, ops: tuple[Op, ...]) -> None:
        Path(self._root).mkdir()
        for op in ops:
            self._apply(op)

    def enter(self) -> None:
        """Make the built tree the root and let go of the host's."""
        os.chdir(self._root)
        syscalls.pivot_root(".", ".")
        syscalls.unmount(".", syscalls.MNT_DETACH)
        os.chdir("/")

    def _apply(self, op: Op) -> None:
        target = self._root + op.target if op.target != "/" else self._root
        match op:
            case Bind():
                _bind(self._host(op.source), target, read_only=op.read_only)
            case Placed():
                staged = self._new_name()
                _write(staged, op.mode, op.content)
                _bind(staged, target)
            case Tmpfs():
                _tmpfs(target, op)
            case Cover():
                self._cover(op, target)
            case Proc():
                syscalls.mount("proc", target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
            case Sysfs():
                self._sysfs(target)
            case Link():
                raise AssertionError("links are made with the layer that holds them")

    def _cover(self, op: Cover, target: str) -> None:
        lower = self._host(op.target)
        # An overlay does not show what is mounted below it, and in a user namespace is refused.
        if op.overlay and not _has_mounts_below(lower):
            self._overlay(lower, target, op.made)
            return
        syscalls.mount("tmpfs", target, "tmpfs", data="mode=755")
        _bind_entries(lower, target, op.bare)
        _make(target, op.made)

    def _overlay(self, lower: str, target: str, made: tuple[Made, ...]) -> None:
        layer = self._new_name()
        for part in ("upper", "work"):
            Path(layer, part).mkdir(parents=True)
        Path(layer, "upper").chmod(Path(lower).stat().st_mode & 0o7777)
        _make(f"{layer}/upper", made)
        data = f"lowerdir={_escaped(lower)},upperdir={layer}/upper,workdir={layer}/work"
        syscalls.mount("overlay", target, "overlay", data=data)

    def _sysfs(self, target: str) -> None:
        try:
            syscalls.mount("sysfs", target, "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        except PermissionError:
            return  # a container that masks parts of /sys: the host's view stays
        cgroups = self._host("/sys/fs/cgroup")
        if Path(cgroups).is_mount():
            _bind(cgroups, f"{target}/fs/cgroup")

    def _new_name(self) -> str:
        self._count += 1
        return f"{self._scratch}/{self._count}"


def _bind(source: str, target: str, *, read_only: bool = False) -> None:
    if not Path(source).exists():
        raise FileNotFoundError(2, "No such file or directory", source)
    syscalls.mount(source, target, "", MS_BIND | MS_REC)
    if read_only:
        _make_read_only(target)


def _make_read_only(target: str) -> None:
    seen = os.statvfs(target).f_flag
    kept = sum(flag for have, flag in _KEPT if seen & have)
    syscalls.mount("", target, "", MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY | kept)


def _tmpfs(target: str, op: Tmpfs) -> None:
    size = f",size={op.size}" if op.size is not None else ""
    syscalls.mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, f"mode={op.mode:o}{size}")
    _make(target, op.made)
    if op.read_only:
        _make_read_only(target)


def _make(layer: str, made: tuple[Made, ...]) -> None:
    for item in made:
        path = Path(layer, item.path)
        if item.link:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(item.link)
        elif item.content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(str(path), item.mode, item.content)
        else:
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(item.mode)


def _write(path: str, mode: int, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(content)
    Path(path).chmod(mode)


def _bind_entries(lower: str, target: str, bare: tuple[str, ...]) -> None:
    for entry in os.scandir(lower):
        copy = Path(target, entry.name)
        if entry.is_symlink():
            copy.symlink_to(Path(entry.path).readlink())
            continue
        if entry.is_dir():
            copy.mkdir()
        else:
            copy.touch()
        if entry.name not in bare:
            syscalls.mount(entry.path, str(copy), "", MS_BIND | MS_REC)


def _has_mounts_below(path: str) -> bool:
    lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    points = (_unescaped(line.split(" ", 5)[4]) for line in lines)
    return any(point.startswith(f"{path}/") for point in points)


def _unescaped(field: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
