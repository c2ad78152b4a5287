"""Into a pod that runs: a command with the caller's terminal, a file out of it, ranks' stacks.

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
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.observed import Pod
from mpi_trainer.sdk.errors import JobError

_CHUNK: Final = 1 << 16
_STACK_SECONDS: Final = 40.0
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
