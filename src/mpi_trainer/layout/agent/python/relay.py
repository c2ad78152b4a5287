"""Runs one rank of Open MPI 4 in its place, with a copier that makes short lines longer.

    python3 -I -S relay WORD ENDED DRAINED NAME PROGRAM [ARGUMENT...]

Open MPI 4 copies up to 4096 bytes of a rank, and a mark of some 14 bytes for every line, into 8192
bytes, and drops what does not fit. So lines of less than `SHORT` bytes get `WORD` before their
newline, and `]<` gets it in between, so that nothing a rank writes looks like a mark; `lines` takes
it out again. A line that was begun goes on at once: only its length is kept.

This process becomes the rank, by the shell NAME, with a terminal where it had one and a pipe where
it had none. The copier is in a session of its own, which outlives a kill of the rank's group. It
ends when nobody can write to it any more, or nobody reads it. ENDED and DRAINED are two pipes of
rank.sh: when the first has been opened and closed the rank has ended, and the second is closed when
all of it has gone on, though what the rank has started may write more.

Guarantee: without the word, every byte goes on, in order. Arguments and environment pass as they
came: Python's own notion of both is not used.
Danger: runs in images of users, with any Python since 3.6; nothing but the standard library, and
little of that: every rank waits for its import.
"""

# ruff: noqa: PTH123, PTH208
# pathlib and signal would cost every rank ten milliseconds each.

import os
import select
import sys
import termios

try:
    import _signal as signal  # type: ignore[import-not-found]
except ImportError:
    import signal

SHORT = 32
READ = 1 << 16


class Padding:
    """One output of a rank, with the word in it."""

    def __init__(self, word: bytes) -> None:
        self._word = word
        self._length = 0  # of the line that has been begun
        self._last = b""

    def padded(self, data: bytes) -> bytes:
        if self._last == b"]" and data[:1] == b"<":
            data = self._word + data
        self._last = data[-1:]
        first, *rest = data.replace(b"]<", b"]" + self._word + b"<").split(b"\n")
        if not rest:
            self._length += len(first)
            return first
        if self._length + len(first) + 1 < SHORT:
            first += self._word
        last = rest.pop()
        self._length = len(last)
        longer = [line if len(line) + 1 >= SHORT else line + self._word for line in rest]
        return b"\n".join([first, *longer, last])


class Stream:
    """`given` is what the rank gets to write to, `source` our end of it, and `target` what Open MPI
    reads."""

    def __init__(self, target: int, word: bytes) -> None:
        self.target = target
        self.source, self.given = _terminal() if os.isatty(target) else os.pipe()
        self._padding = Padding(word)

    def copy(self) -> bool:
        """Hands on what is there; whether more may come."""
        try:
            data = os.read(self.source, READ)
        except OSError:  # of a terminal that nobody has open
            return False
        return bool(data) and _write(self.target, self._padding.padded(data))


def _terminal() -> "tuple[int, int]":
    """Both ends of one that changes nothing. It becomes nobody's controlling terminal."""
    ours, given = os.openpty()
    modes = termios.tcgetattr(given)
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(given, termios.TCSANOW, modes)
    return ours, given


def _write(target: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            try:
                view = view[os.write(target, view) :]
            except BlockingIOError:
                select.select([], [target], [])
    except OSError:
        return False
    return True


def _close(opened: int) -> None:
    try:
        os.close(opened)
    except OSError:  # that of the folder itself
        return


def copy(streams: "list[Stream]", ended: int, drained: int) -> None:
    poll = select.poll()
    poll.register(ended, 0)
    for stream in streams:
        poll.register(stream.source, select.POLLIN)
        poll.register(stream.target, 0)
    last = False
    while streams:
        ready = dict(poll.poll(0 if last else None))
        if last and not any(stream.source in ready for stream in streams):
            os.close(drained)
            last = False
        if ended in ready:
            poll.unregister(ended)
            last = True
        for stream in [*streams]:
            if stream.target in ready or (stream.source in ready and not stream.copy()):
                poll.unregister(stream.source)
                poll.unregister(stream.target)
                os.close(stream.source)
                os.close(stream.target)
                streams.remove(stream)


def detach(streams: "list[Stream]", ended: int, drained: int) -> None:
    """Becomes the copier, with nothing of the rank's but its output."""
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    kept = {ended, drained}
    kept.update(stream.source for stream in streams)
    kept.update(stream.target for stream in streams)
    for opened in map(int, os.listdir("/proc/self/fd")):
        if opened not in kept:
            _close(opened)
    copy(streams, ended, drained)


def become(*words: bytes) -> None:
    """The program, as the shell starts it that says so where there is none."""
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    env = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    os.execve(b"/bin/sh", [b"/bin/sh", b"-c", b'exec "$@"', *words], env)


def run(word: bytes, ended: bytes, drained: bytes, *program: bytes) -> None:
    try:
        pipes = os.open(ended, os.O_RDONLY | os.O_NONBLOCK), os.open(drained, os.O_RDWR)
        streams = [Stream(1, word), Stream(2, word)]
        child = os.fork()
    except OSError as error:
        text = "mpi-agent: Open MPI 4 may drop short lines of this rank: {}\n"
        os.write(2, text.format(error).encode())
        return become(*program)
    if child == 0:
        try:
            detach(streams, *pipes)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for stream in streams:
        os.dup2(stream.given, stream.target)
    return become(*program)


if __name__ == "__main__":
    with open("/proc/self/cmdline", "rb") as file:
        run(*file.read().split(b"\0")[-len(sys.argv) : -1])
