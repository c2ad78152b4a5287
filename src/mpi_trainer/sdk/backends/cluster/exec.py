"""Into a pod that runs: a command with the caller's terminal, a file, ranks' stacks, its usage.

All of it is `exec`, for which the API server asks for a right of its own. Words are passed on as
they are: no shell of ours ever sees text of a user. Danger: a reading of standard input that has
begun cannot be broken off, so the thread that does it ends with the program.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from mpi_trainer.kube import exec as remote
from mpi_trainer.kube import requests
from mpi_trainer.layout.agent.paths import SCRATCH
from mpi_trainer.sdk.backends.backend import JobView
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.observed import Pod
from mpi_trainer.sdk.errors import JobError

_CHUNK: Final = 1 << 16
_STACK_SECONDS: Final = 40.0
_USAGE_SECONDS: Final = 20.0
# Every rank that has a record of its start and still runs.
_RANKS: Final = """\
for record in "$1"/ranks/*.start "$1"/ranks/done/*.start; do
    [ -r "$record" ] || continue
    rank= pid=
    while IFS='=' read -r key value; do
        case $key in rank) rank=$value ;; pid) pid=$value ;; esac
    done <"$record"
    [ -n "$pid" ] && [ -d "/proc/$pid" ] || continue
    echo "@rank $rank"
    [ "$2" = stacks ] || continue
    py-spy dump --nonblocking --pid "$pid" 2>/dev/null && continue
    gdb -p "$pid" -batch -ex 'thread apply all bt' 2>/dev/null && continue
    read -r where <"/proc/$pid/wchan" || where=
    echo "process $pid: in ${where:-user code} (install py-spy in the image for Python stacks)"
done
"""
# CPU time in nanoseconds and the machine's clock twice, then memory and what of it are cached files
# that the kernel can drop; of this container's control group, of either version.
_USAGE: Final = """\
cpu= memory=
while IFS=: read -r number controllers path; do
    case ,$controllers, in
        ,,) set -- cpu.stat memory.current "/sys/fs/cgroup$path" /sys/fs/cgroup ;;
        *,cpuacct,*) set -- cpuacct.usage - "/sys/fs/cgroup/cpuacct$path" /sys/fs/cgroup/cpuacct \
            /sys/fs/cgroup/cpu,cpuacct ;;
        *,memory,*) set -- - memory.usage_in_bytes "/sys/fs/cgroup/memory$path" \
            /sys/fs/cgroup/memory ;;
        *) continue ;;
    esac
    spent=$1 held=$2
    shift 2
    for group; do
        [ -n "$cpu" ] || [ ! -r "$group/$spent" ] || cpu=$group/$spent
        [ -n "$memory" ] || [ ! -r "$group/$held" ] || memory=$group/$held
    done
done </proc/self/cgroup
clock() {
    read -r now rest </proc/uptime
    echo "clock $now"
    case $cpu in
        */cpu.stat)
            while read -r key value; do
                [ "$key" != usage_usec ] || echo "cpu ${value}000"
            done <"$cpu"
            ;;
        ?*) read -r value <"$cpu" && echo "cpu $value" ;;
    esac
}
clock
sleep 1
clock
[ -n "$memory" ] || exit 0
read -r value <"$memory" && echo "memory $value"
while read -r key value; do
    case $key in inactive_file | total_inactive_file) echo "$key $value" ;; esac
done <"${memory%/*}/memory.stat"
"""


async def run_in(server: ApiServer, pod: Pod, command: Sequence[str]) -> int:
    """The command's exit code. Its output goes to ours as it comes."""
    tty = sys.stdin.isatty() and sys.stdout.isatty()
    meta = pod.metadata
    request = requests.execute(
        meta.namespace, meta.name, command, pod.container, stdin=True, tty=tty
    )
    with _raw(tty):
        async with remote.session(server.streams, request) as session:
            feeding = asyncio.ensure_future(_feed(session))
            try:
                async for chunk in session.output():
                    stream = sys.stdout if chunk.stream == "stdout" else sys.stderr
                    stream.buffer.write(chunk.data)
                    stream.buffer.flush()
            finally:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)
    assert session.code is not None
    return session.code


async def _feed(session: remote.Session) -> None:
    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        try:
            while data := os.read(sys.stdin.fileno(), _CHUNK):
                loop.call_soon_threadsafe(pieces.put_nowait, data)
            loop.call_soon_threadsafe(pieces.put_nowait, b"")
        except (OSError, ValueError, RuntimeError):
            return  # nothing to read from, or the loop is over

    threading.Thread(target=read, daemon=True).start()
    if (size := _size()) is not None:
        await session.resize(*size)
    while data := await pieces.get():
        await session.write(data)
    await session.end_input()


def _size() -> tuple[int, int] | None:
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return None
    return size.columns, size.lines


@contextmanager
def _raw(tty: bool) -> Iterator[None]:
    """The terminal belongs to the remote side: every key goes there, Ctrl-C too."""
    if not tty:
        yield
        return
    import termios
    import tty as terminal

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    try:
        terminal.setraw(number)
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


async def fetch(server: ApiServer, pod: Pod, path: str, destination: Path) -> None:
    """Copies a file or folder out of the pod, by the image's own tar."""
    inner = PurePosixPath(path)
    with tempfile.TemporaryFile() as file:
        words = ("tar", "-cf", "-", "-C", str(inner.parent), "--", inner.name)
        code, said = await _into(server, pod, words, file)
        if code:
            raise JobError(
                f"cannot copy {path} out of {pod.name}: {said or f'tar ended with {code}'}",
                "Check the path with `odh mpijob exec NAME -- ls`.",
            )
        file.seek(0)
        try:
            await asyncio.to_thread(_unpack, file, inner.name, destination)
        except (OSError, tarfile.TarError) as error:
            raise JobError(
                f"cannot write {path} of {pod.name} to {destination}: {error}",
                "Name a place in a folder that exists and does not hold it yet; links that lead "
                "out of a folder are not copied.",
            ) from error


def copy_hint(job: JobView, path: str) -> str:
    """What to do about a file of a job whose pods are gone."""
    spec = job.manifest.get("spec") or {}
    launcher = (spec.get("mpiReplicaSpecs") or {}).get("Launcher") or {}
    pod = (launcher.get("template") or {}).get("spec") or {}
    claims = {
        volume["name"]: (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in pod.get("volumes") or ()
    }
    mounts = [m for one in pod.get("containers") or () for m in one.get("volumeMounts") or ()]
    for mount in mounts:
        where, claim = PurePosixPath(mount["mountPath"]), claims.get(mount["name"])
        if claim and PurePosixPath(path).is_relative_to(where):
            words = f"--image {job.image} --pvc {claim}:{where} --as-is -- sleep 1h"
            return (
                f"It is on the claim {claim}: mount that in another job, "
                f"`odh mpijob create copy -w 1 {words}`, and copy from there, "
                f"`odh mpijob cp copy:{path} DEST`."
            )
    return (
        "What a pod wrote to its own disk is gone with it. Let the job write to a claim (`odh "
        "mpijob create --pvc NAME:PATH`), or copy while it runs."
    )


async def _into(
    server: ApiServer, pod: Pod, words: Sequence[str], file: IO[bytes]
) -> tuple[int, str]:
    meta, said = pod.metadata, b""
    request = requests.execute(meta.namespace, meta.name, words, pod.container)
    async with remote.session(server.streams, request) as session:
        async for chunk in session.output():
            if chunk.stream == "stdout":
                file.write(chunk.data)
            else:
                said += chunk.data
    return session.code or 0, " ".join(said.decode(errors="replace").split())[-300:]


def _unpack(file: IO[bytes], name: str, destination: Path) -> None:
    """Nothing in the archive can leave the target: the filter refuses what would."""
    target = destination / name if destination.is_dir() else destination
    with (
        tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder,
        tarfile.open(fileobj=file) as archive,
    ):
        archive.extractall(folder, filter="data")
        Path(folder, name).replace(target)


async def usage(server: ApiServer, pod: Pod) -> tuple[float | None, int | None]:
    """Busy cores during a second, and bytes of memory without droppable files, as the kubelet
    counts it; None where the container cannot tell."""
    meta = pod.metadata
    words = ("/bin/sh", "-c", _USAGE)
    done = await remote.run(
        server.streams,
        meta.namespace,
        meta.name,
        words,
        container=pod.container,
        seconds=_USAGE_SECONDS,
    )
    return usage_from(done.stdout.decode(errors="replace"))


def usage_from(said: str) -> tuple[float | None, int | None]:
    """The two figures that a container's answer stands for."""
    found: dict[str, list[float]] = {}
    for line in said.splitlines()[:100]:
        key, _, value = line.partition(" ")
        if len(value) <= 20 and value.replace(".", "", 1).isdecimal():
            found.setdefault(key, []).append(float(value))
    clock, cpu = found.get("clock", []), found.get("cpu", [])
    cpus = None
    if len(clock) == 2 and len(cpu) == 2 and clock[1] > clock[0]:
        cpus = max(cpu[1] - cpu[0], 0.0) / 1e9 / (clock[1] - clock[0])
    memory = found.get("memory")
    dropped = found.get("total_inactive_file") or found.get("inactive_file") or [0.0]
    return cpus, None if not memory else max(int(memory[0] - dropped[0]), 0)


async def ranks(server: ApiServer, pod: Pod) -> tuple[int, ...]:
    """The ranks that run in the pod."""
    return tuple(await _at_work(server, pod, "ranks"))


async def stacks(server: ApiServer, pod: Pod) -> dict[int, str]:
    """Where every rank of the pod is, by rank; the tools are those of the image."""
    return await _at_work(server, pod, "stacks")


async def _at_work(server: ApiServer, pod: Pod, what: str) -> dict[int, str]:
    words = ("/bin/sh", "-c", _RANKS, "ranks", SCRATCH, what)
    meta = pod.metadata
    done = await remote.run(
        server.streams,
        meta.namespace,
        meta.name,
        words,
        container=pod.container,
        seconds=_STACK_SECONDS,
    )
    found: dict[int, str] = {}
    for part in done.stdout.decode(errors="replace").split("@rank ")[1:]:
        number, _, text = part.partition("\n")
        if number.strip().isdecimal():
            found[int(number)] = text.strip()
    return found
