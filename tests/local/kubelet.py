"""The first program of a pod that is made as a kubelet would make it, from a Layout's own words.

    python kubelet.py SPEC

Runs as root in a pod of the sandbox: makes the container's root from an image tree, mounts what
the layout asks for, runs its `prepare` and then its command, both as the container's user without
any privilege. The machine's own files are never written: all changes lie in the pod's memory.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

PLACE = Path("/run/container")
ROOT = PLACE / "root"
_NO_NEW_PRIVILEGES = 38
_DROP_BOUNDING = 24


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def inside(path: str) -> Path:
    return ROOT / path.lstrip("/")


def make_root(spec: dict[str, Any]) -> None:
    """A writable layer over the image's folders, each shown where it belongs."""
    (PLACE / "changes").mkdir(parents=True)
    mount("-t", "tmpfs", "none", str(PLACE / "changes"))
    for part in ("upper", "work", "empty"):
        (PLACE / "changes" / part).mkdir()
    ROOT.mkdir()
    lower = spec["tree"] or str(PLACE / "changes/empty")
    layers = ",".join(
        (f"lowerdir={lower}", *(f"{p}dir={PLACE}/changes/{p}" for p in ("upper", "work")))
    )
    mount("-t", "overlay", "-o", layers, "overlay", str(ROOT))
    for source, target in spec["binds"]:
        place = inside(target)
        if Path(source).is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        mount("--bind", "-o", "ro", source, str(place))
    for path, target in spec["links"]:
        inside(path).parent.mkdir(parents=True, exist_ok=True)
        inside(path).unlink(missing_ok=True)
        inside(path).symlink_to(target)
    for folder in ("proc", "sys"):
        inside(folder).mkdir(exist_ok=True)
        mount("--rbind", f"/{folder}", str(inside(folder)))
    make_devices(spec["termination"])
    for path in spec["own"]:  # what the image gives to its user
        inside(path).mkdir(parents=True, exist_ok=True)
        os.chown(inside(path), spec["uid"], spec["gid"])


def make_devices(termination: str) -> None:
    """The devices of every container, shared memory, and the file for last words."""
    inside("dev").mkdir(exist_ok=True)
    mount("-t", "tmpfs", "none", str(inside("dev")))
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        inside(f"dev/{name}").touch()
        mount("--bind", f"/dev/{name}", str(inside(f"dev/{name}")))
    inside("dev/shm").mkdir()
    mount("-t", "tmpfs", "-o", "mode=1777", "none", str(inside("dev/shm")))
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        inside(f"dev/{name}").symlink_to(f"/proc/self/fd{target}")
    Path(termination).touch()
    Path(termination).chmod(0o666)
    inside("dev/termination-log").touch()
    mount("--bind", termination, str(inside("dev/termination-log")))


def put(path: str, text: bytes, mode: int) -> None:
    place = inside(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(text)
    place.chmod(mode)


def bind_over(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--bind", "-o", "ro", str(source), str(target))


def as_user(spec: dict[str, Any], command: list[str]) -> NoReturn:
    """Becomes the container's program: no capability, no way to gain one."""
    os.chroot(ROOT)
    os.chdir(spec["cwd"])
    libc = ctypes.CDLL(None, use_errno=True)
    if not spec["privileged"]:
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if spec["uid"]:
        for capability in range(41):
            libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)
    os.setgroups(spec["groups"])
    os.setgid(spec["gid"])
    os.setuid(spec["uid"])
    os.umask(0o022)
    os.execvpe(command[0], command, spec["env"])


def run_as_user(spec: dict[str, Any], command: list[str]) -> int:
    child = os.fork()
    if child == 0:
        try:
            as_user(spec, command)
        except OSError as error:
            print(f"{command[0]}: {error}", file=sys.stderr)
        os._exit(127)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(spec: dict[str, Any]) -> None:
    make_root(spec)
    for path, text, mode in spec["files"]:
        put(path, text.encode(), mode)
    for path in spec["scratch"]:
        inside(path).mkdir(parents=True, exist_ok=True)
        mount("-t", "tmpfs", "-o", "mode=0777", "none", str(inside(path)))
    for path, text in spec["over"]:  # as a container runtime adds its own files: read-only
        source = PLACE / f"over-{path.replace('/', '-')}"
        source.write_text(text)
        bind_over(source, inside(path))
    for overlay in spec["overlays"]:
        # A kubelet needs the mount point before the root is read-only.
        if not inside(overlay[1]).exists():
            inside(overlay[1]).touch()
    if spec["readOnly"]:
        mount("-o", "remount,ro,bind", str(ROOT))
    if spec["prepare"]:
        code = run_as_user(spec, spec["prepare"])
        if code:
            sys.exit(f"prepare ended with {code}")
    for source, target in spec["overlays"]:
        bind_over(inside(source), inside(target))
    as_user(spec, spec["command"])


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
