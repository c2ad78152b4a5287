"""Memory and CPU limits of pods through control groups, version 1 or 2, where they may be used.

Groups are made below the caller's own (v2: or beside it, where only the parent may have
children), in a directory that carries the supervisor's pid and start time. Guarantee: `close`
removes them, and `sweep` those of supervisors that were killed. Where groups cannot be used
nothing fails: the limits are listed as not applied, with the reason.
"""

import contextlib
import os
import time
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from mpi_trainer.local.pods.pod import PodLimits

_PREFIX: Final = "mpi-trainer"
_PERIOD_US: Final = 100_000
_REMOVE_SECONDS: Final = 2.0


class Support(Struct, frozen=True):
    """Where groups may be made: one directory for each controller, the same one in version 2."""

    kind: Literal["v1", "v2", "none"]
    reason: str = ""
    memory: str | None = None
    cpu: str | None = None


def detect(proc: str = "/proc/self") -> Support:
    """What this process may do with control groups, found by looking only."""
    own = _own_groups(Path(proc, "cgroup").read_text())
    mounts = _mounts(Path(proc, "mountinfo").read_text())
    found = {
        name: _writable(_directory(own.get(name), mounts.get(name))) for name in ("memory", "cpu")
    }
    if any(found.values()):
        return Support("v1", memory=found["memory"], cpu=found["cpu"])
    if "memory" in mounts:
        return Support("none", f"{mounts['memory'][1]}: the own control group is not writable")
    unified = _directory(own.get(""), mounts.get(""))
    if unified is None:
        return Support("none", "no control groups are mounted")
    for place in (unified, unified.parent):
        if _writable(place) and _can_delegate(place):
            controllers = Path(place, "cgroup.controllers").read_text().split()
            at = {name: str(place) if name in controllers else None for name in ("memory", "cpu")}
            return Support("v2", memory=at["memory"], cpu=at["cpu"])
    return Support("none", f"{unified}: no memory controller is delegated to this user")


def _own_groups(text: str) -> dict[str, str]:
    """Controller (empty: version 2) -> path of the own group."""
    fields = (line.split(":", 2) for line in text.splitlines())
    return {name: path for _, names, path in fields for name in names.split(",")}


def _mounts(text: str) -> dict[str, tuple[str, str]]:
    """Controller (empty: version 2) -> root within the hierarchy, mount point."""
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split(" ", 2)
        if kind == "cgroup2":
            found[""] = (fields[3], fields[4])
        if kind == "cgroup":
            found.update(dict.fromkeys(options.split(","), (fields[3], fields[4])))
    return found


def _directory(own: str | None, mount: tuple[str, str] | None) -> Path | None:
    if own is None or mount is None:
        return None
    root, point = mount
    relative = own[len(root.rstrip("/")) :] if own.startswith(root) else ""
    return Path(point, relative.strip("/"))


def _writable(path: Path | None) -> str | None:
    return str(path) if path is not None and os.access(path, os.W_OK | os.X_OK) else None


def _can_delegate(place: Path) -> bool:
    """Only a group without processes of its own, or the machine's root group, has children with
    controllers; asking the kernel would change it, so look whether it was done already."""
    control = Path(place, "cgroup.subtree_control")
    if not os.access(control, os.W_OK):
        return False
    is_root = not Path(place, "cgroup.type").exists()
    return is_root or "memory" in control.read_text().split()


class PodGroup:
    """The control groups of one pod."""

    def __init__(self, memory: Path | None, cpu: Path | None, version: str) -> None:
        self._memory = memory
        self._places = sorted({place for place in (memory, cpu) if place is not None})
        self._version = version
        self._last: tuple[int | None, int | None] | None = None

    def oom_kills(self) -> int | None:
        return self._figures()[0]

    def peak_memory(self) -> int | None:
        return self._figures()[1]

    def close(self) -> None:
        """Keep the last figures and remove the groups, once the pod is gone."""
        self._last = self._figures()
        for place in self._places:
            _remove(place)

    def _figures(self) -> tuple[int | None, int | None]:
        if self._last is not None:
            return self._last
        if self._memory is None:
            return None, None
        events, peak = (
            ("memory.oom_control", "memory.max_usage_in_bytes")
            if self._version == "v1"
            else ("memory.events", "memory.peak")
        )
        return _counter(self._memory / events, "oom_kill"), _number(self._memory / peak)


class JobGroups:
    """The control groups of one supervisor."""

    def __init__(self, support: Support, job: str, home: str) -> None:
        self._support = support
        self._job = job
        self._memory = Path(support.memory, home) if support.memory else None
        self._cpu = Path(support.cpu, home) if support.cpu else None
        self._count = 0
        self._refused: dict[str, None] = {}

    @classmethod
    def make(cls, support: Support, job: str) -> "JobGroups":
        """Sweep what killed supervisors left, then make the directories of this one."""
        sweep(support)
        groups = cls(support, job, _home_of(os.getpid()))
        for place in groups._homes():
            with contextlib.suppress(FileExistsError):
                place.mkdir()
            if support.kind == "v2":
                _enable(place.parent)
                _enable(place)
        return groups

    @property
    def not_applied(self) -> tuple[str, ...]:
        return tuple(self._refused)

    def add(self, name: str, pid: int, limits: PodLimits) -> PodGroup | None:
        """Put a process under limits; what cannot be limited is noted in `not_applied`."""
        for what, wanted, home in (
            ("memory", limits.memory_bytes, self._memory),
            ("cpu", limits.cpus, self._cpu),
        ):
            if wanted is not None and home is None:
                reason = self._support.reason or f"the {what} controller is not available"
                self._refused[f"{what} limits: {reason}"] = None
        if limits.memory_bytes is None and limits.cpus is None:
            return None
        part = f"{self._count}.{name}"
        self._count += 1
        memory = self._memory / part if self._memory else None
        cpu = self._cpu / part if self._cpu else None
        group = PodGroup(memory, cpu, self._support.kind)
        for place in {memory, cpu} - {None}:
            assert place is not None
            place.mkdir()
        self._write_limits(memory, cpu, limits)
        for place in {memory, cpu} - {None}:
            assert place is not None
            (place / "cgroup.procs").write_text(str(pid))
        return group

    def close(self) -> None:
        for place in self._homes():
            _remove_tree(place)

    def _homes(self) -> list[Path]:
        return sorted({place for place in (self._memory, self._cpu) if place is not None})

    def _write_limits(self, memory: Path | None, cpu: Path | None, limits: PodLimits) -> None:
        if memory is not None and limits.memory_bytes is not None:
            for file, value in _memory_settings(self._support.kind, limits.memory_bytes):
                if (memory / file).exists():
                    (memory / file).write_text(value)
        if cpu is not None and limits.cpus is not None:
            for file, value in _cpu_settings(self._support.kind, limits.cpus):
                (cpu / file).write_text(value)


def _memory_settings(kind: str, size: int) -> tuple[tuple[str, str], ...]:
    if kind == "v1":
        return (
            ("memory.limit_in_bytes", str(size)),
            ("memory.memsw.limit_in_bytes", str(size)),
        )
    return ("memory.max", str(size)), ("memory.swap.max", "0")


def _cpu_settings(kind: str, cpus: float) -> tuple[tuple[str, str], ...]:
    quota = max(1000, round(cpus * _PERIOD_US))
    if kind == "v1":
        return ("cpu.cfs_period_us", str(_PERIOD_US)), ("cpu.cfs_quota_us", str(quota))
    return (("cpu.max", f"{quota} {_PERIOD_US}"),)


def sweep(support: Support | None = None) -> tuple[str, ...]:
    """Remove the groups of supervisors that are dead; returns their directories."""
    support = support or detect()
    swept: list[str] = []
    for base in sorted({b for b in (support.memory, support.cpu) if b is not None}):
        for place in Path(base).glob(f"{_PREFIX}.*.*"):
            if not is_alive(place.name):
                _remove_tree(place)
                swept.append(str(place))
    return tuple(swept)


def is_alive(home: str) -> bool:
    """Whether the supervisor that a directory is named after still runs."""
    part = home.split(".")[1]
    return part.isdigit() and home == _home_of(int(part))


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; none if it has ended or never was.

    One that was killed and not yet reaped has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _home_of(pid: int) -> str:
    return f"{_PREFIX}.{pid}.{start_time(pid)}"


def _enable(place: Path) -> None:
    wanted = {"memory", "cpu"} & set((place / "cgroup.controllers").read_text().split())
    missing = wanted - set((place / "cgroup.subtree_control").read_text().split())
    if missing:
        text = " ".join(f"+{name}" for name in sorted(missing))
        (place / "cgroup.subtree_control").write_text(text)


def _remove_tree(place: Path) -> None:
    if place.is_dir():
        for child in place.iterdir():
            if child.is_dir():
                _remove(child)
        _remove(place)


def _remove(place: Path) -> None:
    """The kernel may count a process for a moment after it was waited for."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while True:
        try:
            place.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.001)


def _counter(path: Path, name: str) -> int | None:
    try:
        pairs = (line.split() for line in path.read_text().splitlines())
    except OSError:
        return None
    return next((int(pair[1]) for pair in pairs if pair[0] == name), None)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
