"""What a pod sees of the file system, as a list of mount operations. Pure but for `survey`.

The pod's root is a copy of the host's mounts under a staging directory, changed there and then
pivoted to, so that every source path still means the host's. Guarantee: the only operations that
create a file, link or directory are `Tmpfs`, `Cover` and `Placed`, and all three create it in
memory of the pod's own; a mount path that does not exist on the host never comes to exist there.
Danger: what a pod writes below a covered directory is lost with the pod, which is why only system
directories are ever covered and the user's are refused.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from mpi_trainer.local.errors import PodError
from mpi_trainer.local.pods.pod import PodFile, PodMount

SHARE: Final = "/run/mpi-agent"
HIDDEN: Final = ("/tmp", "/dev/shm", "/run")
"""of the host; each pod has its own"""

_MOST_STEPS: Final = 1000
"""names on the way to a path, those of links included"""

Kind = Literal["dir", "file"]

_SYSTEM: Final = frozenset(
    ("/bin", "/boot", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/sbin")
) | {"/srv", "/usr", "/var"}


class MountPathError(PodError):
    """A mount path or file path that cannot be given to the pod without touching user files."""


class Made(Struct, frozen=True):
    """A new file (with content), link or directory, relative to the layer that holds it."""

    path: str
    mode: int = 0o755
    content: bytes | None = None
    link: str = ""


class Bind(Struct, frozen=True):
    source: str
    target: str
    read_only: bool = False


class Placed(Struct, frozen=True):
    """A file of the pod's own, bound over one that exists on the host."""

    target: str
    mode: int
    content: bytes


class Tmpfs(Struct, frozen=True):
    target: str
    mode: int = 0o755
    size: int | None = None
    read_only: bool = False
    made: tuple[Made, ...] = ()


class Cover(Struct, frozen=True):
    """A private layer over the directory `target` that still shows its entries, except that the
    `bare` ones are only mount points for what comes next."""

    target: str
    overlay: bool
    made: tuple[Made, ...] = ()
    bare: tuple[str, ...] = ()


class Link(Struct, frozen=True):
    """A symbolic link of the host in a directory that the pod has of its own."""

    target: str
    to: str


class Proc(Struct, frozen=True):
    target: str = "/proc"


class Sysfs(Struct, frozen=True):
    """A /sys whose network devices are the pod's; where it is refused the host's stays."""

    target: str = "/sys"


Op = Bind | Placed | Tmpfs | Cover | Link | Proc | Sysfs


class Wanted(Struct, frozen=True):
    """What the pod shall see beside the host's own files. `shared` are host directories that stay
    visible where they are, and `own` those of the user, which are never covered."""

    files: tuple[PodFile, ...] = ()
    mounts: tuple[PodMount, ...] = ()
    shared: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    share_source: str = ""
    shm_bytes: int | None = None


class HostFacts(Struct, frozen=True):
    """What `survey` saw of the host: the kind of each path that exists among those that matter,
    the paths of links resolved, the links on the way to them that a pod would not see, and the
    directories that are file systems of their own."""

    overlay: bool = True
    kinds: dict[str, Kind] = field(default_factory=dict)
    resolved: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    writable: frozenset[str] = frozenset()


def below(path: str, parent: str) -> bool:
    """Whether `path` is `parent` or lies under it."""
    return parent == "/" or path == parent or path.startswith(parent + "/")


def plan(wanted: Wanted, facts: HostFacts) -> tuple[Op, ...]:
    """The operations that make the pod's root, parents before children."""
    planner = _Planner(wanted, facts)
    for op in _base(wanted, facts):
        planner.add(op)
    for file in wanted.files:
        path = facts.resolved.get(file.path, file.path)
        planner.add(Placed(target=path, mode=file.mode, content=file.content))
    for mount in wanted.mounts:
        path = facts.resolved.get(mount.target, mount.target)
        if mount.source is None:
            planner.add(Tmpfs(target=path, mode=0o777, read_only=mount.read_only))
        else:
            source = facts.resolved.get(mount.source, mount.source)
            planner.add(Bind(source=source, target=path, read_only=mount.read_only))
    return planner.ops()


def _base(wanted: Wanted, facts: HostFacts) -> Iterable[Op]:
    yield Proc()
    yield Sysfs()
    yield Tmpfs(target="/tmp", mode=0o1777)
    if "/dev/shm" in facts.kinds:
        yield Tmpfs(target="/dev/shm", mode=0o1777, size=wanted.shm_bytes)
    yield Tmpfs(target="/run", made=(Made("sshd"), Made("lock", 0o1777)))
    yield Bind(source=wanted.share_source, target=SHARE)
    for real in _kept(wanted, facts.resolved):
        if real in facts.kinds:
            yield Bind(source=real, target=real)
    for path, to in facts.links.items():
        yield Link(target=path, to=to)


def _kept(wanted: Wanted, resolved: dict[str, str]) -> list[str]:
    """What is shown of the directories that the pod hides; nothing twice."""
    real = {resolved.get(path, path) for path in wanted.shared}
    hidden = {path for path in real if is_hidden(path)}
    return sorted(p for p in hidden if not any(p != o and below(p, o) for o in hidden))


def is_hidden(path: str) -> bool:
    """Whether the pod's private directories hide this path of the host."""
    return any(below(path, hidden) for hidden in HIDDEN)


class _Planner:
    """Puts each operation where its target exists, making the target in a private layer."""

    def __init__(self, wanted: Wanted, facts: HostFacts) -> None:
        self._wanted = wanted
        self._facts = facts
        self._asked: dict[str, Op] = {}
        self._done: dict[str, Op] = {}
        self._made: dict[str, dict[str, Made]] = {}

    def add(self, op: Op) -> None:
        self._asked[op.target] = op

    def ops(self) -> tuple[Op, ...]:
        for target in sorted(self._asked, key=_parts):
            self._place(self._asked[target])
        self._done["/"] = Bind("/", "/")
        if "/" in self._made:
            bare = tuple(t[1:] for t, op in self._done.items() if t.count("/") == 1 and _hides(op))
            self._done["/"] = Cover(target="/", overlay=False, bare=bare)
        return tuple(self._with_made(self._done[t]) for t in sorted(self._done, key=_parts))

    def _place(self, op: Op) -> None:
        layer = self._layer_of(op.target)
        if isinstance(layer, Tmpfs):
            self._make(layer.target, op)
            return
        if isinstance(op, Link):
            return  # it is in a directory that is shown
        host = self._host_path(layer, op.target)
        if self._exists(host):
            self._done[op.target] = op
            return
        if isinstance(layer, Bind) and layer.source == layer.target:
            raise MountPathError(_missing(op, layer.target))
        if isinstance(layer, Bind):
            raise MountPathError(_inside_volume(op.target, layer, host))
        ancestor = self._nearest(host)
        if ancestor not in self._made:
            self._cover(ancestor, op)
        self._make(ancestor, op)

    def _layer_of(self, target: str) -> Op | None:
        """The operation already placed that the target lies in; none: the host's own root."""
        path = target
        while path != "/":
            path = _parent(path)
            found = self._done.get(path)
            if isinstance(found, Bind | Tmpfs | Cover):
                return found
        return None

    def _host_path(self, layer: Op | None, target: str) -> str:
        if isinstance(layer, Bind):
            return layer.source.rstrip("/") + target[len(layer.target) :]
        return target

    def _exists(self, path: str) -> bool:
        return path in self._facts.kinds

    def _nearest(self, path: str) -> str:
        while self._facts.kinds.get(path) != "dir":
            path = _parent(path)
        return path

    def _cover(self, ancestor: str, op: Op) -> None:
        own = (self._facts.resolved.get(path, path) for path in self._wanted.own)
        owner = next((o for o in own if o != "/" and below(ancestor, o)), None)
        if owner is not None:
            raise MountPathError(_missing(op, owner))
        if ancestor != "/":
            top = "/" + ancestor.split("/")[1]
            private = ancestor in self._facts.foreign and ancestor != top
            if top not in _SYSTEM or private or ancestor in self._facts.writable:
                raise MountPathError(_missing(op, ancestor))
            self._done[ancestor] = Cover(target=ancestor, overlay=self._facts.overlay)
        self._made[ancestor] = {}

    def _make(self, layer: str, op: Op) -> None:
        """Create the operation's target in a private layer, or the file itself."""
        made = self._made.setdefault(layer, {})
        relative = op.target[len(layer.rstrip("/")) + 1 :]
        if isinstance(op, Placed):
            made[relative] = Made(relative, op.mode, op.content)
            return
        if isinstance(op, Link):
            made[relative] = Made(relative, link=op.to)
            return
        self._done[op.target] = op
        is_file = isinstance(op, Bind) and self._facts.kinds.get(op.source) == "file"
        made[relative] = Made(relative, 0o644, b"") if is_file else Made(relative)

    def _with_made(self, op: Op) -> Op:
        if not isinstance(op, Tmpfs | Cover):
            return op
        return replace(op, made=(*op.made, *self._made.get(op.target, {}).values()))


def _hides(op: Op) -> bool:
    """Whether nothing that was at the target before can be seen any more."""
    return isinstance(op, Tmpfs | Proc)


def _missing(op: Op, owner: str) -> str:
    if isinstance(op, Placed):
        parent = _parent(op.target)
        return (
            f"file {op.target}: the directory {parent} does not exist; "
            f"create it with mkdir -p {parent} or choose a path outside {owner}"
        )
    return (
        f"mountPath {op.target}: this directory does not exist; "
        f"create it with mkdir -p {op.target} or choose a mountPath outside {owner}"
    )


def _inside_volume(target: str, volume: Bind, host: str) -> str:
    return (
        f"mountPath {target}: does not exist in {volume.source}, which is mounted at "
        f"{volume.target}; create it with mkdir -p {host}"
    )


def survey(wanted: Wanted, overlay: bool, host: Callable[[str], str], uid: int) -> HostFacts:
    """Look at the host; `host` gives the path at which the caller sees a path of the host."""
    targets = [f.path for f in wanted.files] + [m.target for m in wanted.mounts]
    sources = [m.source for m in wanted.mounts if m.source is not None]
    named = (*targets, *sources, *wanted.shared, *wanted.own)
    resolved = {path: _real(path) for path in named}
    links = dict(one for path in (*targets, *wanted.shared) for one in _links(path, host))
    binds = [(resolved[m.source], resolved[m.target]) for m in wanted.mounts if m.source]
    places = [resolved[path] for path in targets]
    inner = [s + p[len(t) :] for s, t in binds for p in places if p != t and below(p, t)]
    kept = _kept(wanted, resolved)
    kinds: dict[str, Kind] = {}
    foreign: set[str] = set()
    base = ("/tmp", "/run", "/dev/shm", "/proc", "/sys")
    for path in (*base, *places, *inner, *kept, *(source for source, _ in binds)):
        _look(path, host, kinds, foreign)
    writable = {p for p, k in kinds.items() if uid != 0 and k == "dir" and _may_write(host(p), uid)}
    return HostFacts(overlay, kinds, resolved, links, frozenset(foreign), frozenset(writable))


def _real(path: str) -> str:
    if not path.startswith("/"):
        raise MountPathError(f"{path}: must be an absolute path")
    return str(Path(path).resolve())


def _links(path: str, host: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """The symbolic links on the way to a path that a pod would not see, and where they lead."""
    at, left = "", path.split("/")
    for _ in range(_MOST_STEPS):
        if not left:
            return
        part = left.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        here = Path(host(f"{at}/{part}"))
        if not here.is_symlink():
            at = f"{at}/{part}"
            continue
        to = str(here.readlink())
        if is_hidden(f"{at}/{part}"):
            yield f"{at}/{part}", to
        at, left = "" if to.startswith("/") else at, [*to.split("/"), *left]


def _look(path: str, host: Callable[[str], str], kinds: dict[str, Kind], foreign: set[str]) -> None:
    """Record the path and its parents, up to the first that is known already."""
    while path not in kinds:
        seen = Path(host(path))
        try:
            if seen.exists():
                kinds[path] = "dir" if seen.is_dir() else "file"
                top = "/" + path.split("/")[1]
                if seen.stat().st_dev != Path(host(top)).stat().st_dev:
                    foreign.add(path)
        except PermissionError as error:
            raise MountPathError(f"{path}: this user may not look into its directory") from error
        if path == "/":
            return
        path = _parent(path)


def _may_write(path: str, uid: int) -> bool:
    # Not os.access: the supervisor holds capabilities that the pod's processes will not have.
    seen = Path(path).stat()
    bit = 0o200 if seen.st_uid == uid else 0o002
    return bool(seen.st_mode & bit)


def _parent(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"


def _parts(path: str) -> tuple[str, ...]:
    return () if path == "/" else tuple(path.split("/")[1:])
