"""`odh` and the controller without the start of an interpreter: one process imports them once, and
forks whenever a test starts them.

What a test gets is a real process: the given words, environment, folder and standard streams,
signals, exit code and exit handlers are its own, and coverage begins in it where the environment
says so. What it does not have: what Python and imports do at start-up, the caller's limits, umask,
session, ignored signals and further open files, and its words and variables in /proc. Tests of
those start the installed program (`INSTALLED`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import msgspec
from coverage import Coverage

from tests.measured import CONFIG, ROOT

INSTALLED: Final = Path(sys.executable).with_name("odh")
"""`odh` as `pip` installs it, with all that starting it takes"""
CLIENT: Final = Path(__file__).with_name("forkserver_client.py")
MARK: Final = "MPI_TRAINER_TEST_MARK"
"""a variable by which tests find the processes of a run; those forked here have a name made of it,
since what stands in /proc of their environment is the server's"""
PACKAGES: Final = ("cli", "controller", "local", "plan", "sdk", "webhook")
_NUMBER: Final = struct.Struct("i")


class Request(msgspec.Struct, frozen=True):
    """What a process is to be; `words` begin with the path of `odh`, or with `-m MODULE`."""

    words: list[str]
    env: dict[str, str]
    folder: str

    def run(self) -> None:
        """Ends with SystemExit, as every Python program does."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.env)
        time.tzset()
        if MARK in self.env:
            Path("/proc/self/comm").write_text(named(self.env[MARK]))
        sys.stdin, sys.stdout, sys.stderr = (
            _opened(number, old) for number, old in enumerate((sys.stdin, sys.stdout, sys.stderr))
        )
        if os.environ.get("COVERAGE_PROCESS_START"):
            import coverage

            coverage.process_startup(force=True)
        if self.words[0] == "-m":
            sys.argv, sys.path[0] = self.words[1:], self.folder
            runpy.run_module(self.words[1], run_name="__main__", alter_sys=True)
        else:
            from mpi_trainer.cli.main import main

            sys.argv, sys.path[0] = self.words, str(INSTALLED.parent)
            main()


def named(mark: str) -> str:
    """As long as Linux lets names of processes be."""
    return f"odh-{mark}"[:15]


def _opened(number: int, old: Any) -> Any:
    """A standard stream as Python opens it, which depends on what the descriptor is now."""
    return open(
        number,
        old.mode,
        buffering=1 if number == 2 else -1,
        encoding=old.encoding,
        errors=old.errors,
        closefd=False,
    )


# --- the server ----------------------------------------------------------------------------------


class Server:
    """Forks on request, and tells each caller the number and the end of its process. A caller that
    goes away takes its process along."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(listener, selectors.EVENT_READ)
        self._waiting.register(sys.stdin, selectors.EVENT_READ)
        self._callers: dict[int, tuple[int, socket.socket]] = {}
        """by the descriptor of the process: its number, and who asked for it"""

    def serve(self) -> Request:
        """Returns in every forked process; in the server never, which ends with whoever started it
        and holds the other end of its standard input."""
        while True:
            for key, _ in self._waiting.select():
                if key.fileobj == sys.stdin:
                    os._exit(0)
                elif key.fileobj == self._listener:
                    request = self._fork(self._listener.accept()[0])
                    if request is not None:
                        return request
                elif key.fd in self._callers:
                    self._ended(key.fd)
                elif isinstance(key.fileobj, socket.socket):
                    self._left(key.fileobj)

    def _fork(self, caller: socket.socket) -> Request | None:
        data, files, _, _ = socket.recv_fds(caller, 1 << 16, 3)
        while len(data) < _NUMBER.size or len(data) < _NUMBER.size + _NUMBER.unpack_from(data)[0]:
            more = caller.recv(1 << 20)
            if not more:  # whoever asked for a process went away
                for file in (*files, caller.detach()):
                    os.close(file)
                return None
            data += more
        pid = os.fork()
        if not pid:
            self._close()
            caller.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            return Request(*marshal.loads(data[_NUMBER.size :]))
        for file in files:
            os.close(file)
        process = os.pidfd_open(pid)
        self._callers[process] = pid, caller
        self._waiting.register(process, selectors.EVENT_READ)
        self._waiting.register(caller, selectors.EVENT_READ)
        with suppress(OSError):  # `_left` sees it too
            caller.sendall(_NUMBER.pack(pid))
        return None

    def _ended(self, process: int) -> None:
        pid, caller = self._callers.pop(process)
        self._waiting.unregister(process)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        if caller.fileno() >= 0:
            self._waiting.unregister(caller)
            with suppress(OSError):
                caller.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))
            caller.close()

    def _left(self, caller: socket.socket) -> None:
        if caller.fileno() < 0:  # its process has ended in the same moment
            return
        self._waiting.unregister(caller)
        caller.close()
        for process, (_, one) in self._callers.items():
            if one is caller:
                signal.pidfd_send_signal(process, signal.SIGKILL)

    def _close(self) -> None:
        self._waiting.close()
        self._listener.close()
        for process, (_, caller) in self._callers.items():
            os.close(process)
            caller.close()


def _import_everything(config: str) -> None:
    """`config`: coverage's, where processes are measured; what they find imported counts too."""
    measuring: Any = None
    if config:
        import coverage

        measuring = coverage.Coverage(config_file=config, data_suffix=True)
        measuring.set_option("run:patch", [])  # forked processes bring their own
        measuring.start()
    for package in PACKAGES:
        module = importlib.import_module(f"mpi_trainer.{package}")
        for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    if measuring:
        measuring.stop()
        measuring.save()


def _main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    _import_everything(sys.argv[2])
    gc.collect()
    gc.freeze()
    request = Server(listener).serve()
    try:
        request.run()
    except SystemExit as end:
        if isinstance(end.code, int):
            _exit(end.code)
        raise


def _exit(code: int) -> NoReturn:
    """As Python ends a program, but for taking down every module, which costs most of the time of
    a short one."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    os._exit(code)


# --- for tests -----------------------------------------------------------------------------------


@cache
def _address() -> str:
    """Of the server, which is started for the first who asks and ends with this process."""
    folder = tempfile.mkdtemp(prefix="odh-fork-")
    address = f"{folder}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        number = listener.fileno()
        config = "" if Coverage.current() is None else str(CONFIG)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forkserver", str(number), config],
            pass_fds=(number,),
            cwd=ROOT,
            env={k: v for k, v in os.environ.items() if k != "COVERAGE_PROCESS_START"},
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
    atexit.register(_end, os.getpid(), server, folder)
    return address


def _end(starter: int, server: subprocess.Popen[bytes], folder: str) -> None:
    if os.getpid() == starter:  # and not a process that a test has forked
        server.communicate(timeout=60)
        shutil.rmtree(folder)


@cache
def odh() -> Path:
    """A program to start in place of the installed one."""
    path = Path(_address()).with_name("odh")
    path.write_text(f"#!{sys.executable} -IS\n{CLIENT.read_text()}")
    path.chmod(0o755)
    return path


class Forked:
    """A process of the server, as `subprocess.Popen` has them."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], output: IO[Any]) -> None:
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_address())
        data = marshal.dumps((list(words), dict(env), str(Path.cwd())))
        with open(os.devnull) as nothing:  # noqa: PTH123
            files = [nothing.fileno(), output.fileno(), output.fileno()]
            socket.send_fds(self._server, [_NUMBER.pack(len(data)) + data], files)
        self.pid: int = _NUMBER.unpack(self._server.recv(_NUMBER.size))[0]

    def poll(self) -> int | None:
        if self._lock.acquire(blocking=False):  # else another thread waits
            with suppress(subprocess.TimeoutExpired):
                self._receive(0)
            self._lock.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            return self._receive(timeout)

    def _receive(self, timeout: float | None) -> int:
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                (self.returncode,) = _NUMBER.unpack(self._server.recv(_NUMBER.size))
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0) from None
            self._server.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    _main()
