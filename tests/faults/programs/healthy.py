"""A rank that is well, in the way that its first word says."""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable

FIRST_RANK = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK")) == "0"
if sys.argv[1] == "slow-start" and FIRST_RANK:
    time.sleep(float(sys.argv[2]))  # data is read before MPI is started, on one rank only

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD


def slow_finish() -> None:
    """Ranks may end far apart: nobody waits for those that are done."""
    time.sleep(2.0 * comm.rank)


def chatty() -> None:
    for line in range(3000):
        print(f"step {line}: loss {1 / (line + 1):.4f}", flush=line % 100 == 0)


def forking() -> None:
    """A data loader: children that come and go, one of which outlives a signal."""
    for _ in range(3):
        child = os.fork()
        if child == 0:
            time.sleep(0.2)
            os._exit(0)
        os.waitpid(child, 0)
    orphan = os.fork()
    if orphan == 0:
        os.setsid()
        time.sleep(0.5)
        os._exit(0)


def failing_children() -> None:
    """A probe that fails is a question answered with no."""
    for command in (["false"], ["sh", "-c", "exit 7"], ["sh", "-c", "kill -9 $$"]):
        assert subprocess.run(command, check=False).returncode != 0
    raising = [sys.executable, "-c", "raise RuntimeError('not the rank')"]
    assert subprocess.run(raising, check=False, capture_output=False).returncode == 1


def caught_exceptions() -> None:
    import traceback

    try:
        raise ValueError("this one is expected")
    except ValueError:
        traceback.print_exc()


def words_of_failure() -> None:
    print("Traceback (most recent call last):")
    print("RuntimeError: just a line of a log")
    print("error: 0 errors, Segmentation fault, Killed, MPI_ABORT was invoked on rank 1")
    print("ORTE has lost communication with a remote daemon", file=sys.stderr)


def stderr_only() -> None:
    for step in range(20):
        print(f"epoch 1 step {step} loss 0.5 errors=0 failed=0", file=sys.stderr)


def log_levels() -> None:
    """Loggers that speak of errors which the program has dealt with."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log = logging.getLogger("data")
    log.error("shard 3 failed: [Errno 2] No such file or directory: '/data/3'; skipped")
    log.critical("CUDA error: out of memory; falling back to the CPU")
    print("ERROR: 2 of 1000 records could not be parsed, left out")
    print(json.dumps({"level": "error", "msg": "HTTP Error 503: Service Unavailable, retrying"}))
    try:
        json.loads("{")
    except ValueError:
        log.exception("a record is damaged")


def retries() -> None:
    """A service that is there at the second try."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = unused.getsockname()
    for attempt in range(3):
        try:
            socket.create_connection(address, timeout=1)
        except OSError as error:
            print(f"attempt {attempt}: {type(error).__name__}: {error}; trying again", flush=True)
    with contextlib.suppress(OSError):
        socket.getaddrinfo("store.example.invalid", 443)
    print("urlopen error [Errno -3] Temporary failure in name resolution; using the cache")


def progress_bar() -> None:
    for done in range(0, 101, 5):
        print(f"\rEpoch 1: {done:3}%|{'#' * (done // 5):20}| {done}/100", end="", flush=True)
    print()


def long_lines() -> None:
    print("x" * 100_000, "failed " * 1000)
    sys.stdout.buffer.write(b"\xff\xfe\x00 not text \x1b[31m Error \x1b[0m\n")


def warns() -> None:
    import numpy

    warnings.warn("this API will be removed", DeprecationWarning, stacklevel=1)
    warnings.warn("the learning rate was not set", RuntimeWarning, stacklevel=1)
    numpy.ones(3) / numpy.zeros(3)


def thread_fails() -> None:
    """Python prints the traceback of a thread and goes on."""

    def report() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    thread = threading.Thread(target=report)
    thread.start()
    thread.join()


class _Closing:
    def __del__(self) -> None:
        raise OSError(9, "Bad file descriptor")


def ignored_exception() -> None:
    """`Exception ignored in: ...`"""
    _Closing()


def own_signals() -> None:
    """A checkpoint on demand, a child that is ended, and a rank that is stopped for a moment."""
    signal.signal(signal.SIGTERM, lambda *_: print("saving a checkpoint", flush=True))
    os.kill(os.getpid(), signal.SIGTERM)
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    child.wait()
    if comm.rank == 1:
        subprocess.Popen(["sh", "-c", "kill -STOP $PPID; sleep 2; kill -CONT $PPID"])
        time.sleep(0.5)


def zombies() -> None:
    for _ in range(5):
        if os.fork() == 0:
            os._exit(1)
    time.sleep(1)


def stdin() -> None:
    """mpirun gives its standard input to rank 0."""
    if comm.rank == 0:
        assert int(sys.stdin.readline()) == 41


def long() -> None:
    """One rank computes without MPI, and the others wait for it."""
    if comm.rank == 1:
        until = time.monotonic() + float(sys.argv[2])
        while time.monotonic() < until:
            sum(range(10_000))
            time.sleep(0.2)


KINDS: dict[str, Callable[[], object]] = {
    "quiet": lambda: time.sleep(1.0),
    "slow-start": lambda: None,
    "slow-finish": slow_finish,
    "chatty": chatty,
    "forking": forking,
    "failing-children": failing_children,
    "caught-exceptions": caught_exceptions,
    "words-of-failure": words_of_failure,
    "stderr-only": stderr_only,
    "log-levels": log_levels,
    "retries": retries,
    "progress-bar": progress_bar,
    "long-lines": long_lines,
    "warnings": warns,
    "thread-fails": thread_fails,
    "ignored-exception": ignored_exception,
    "own-signals": own_signals,
    "zombies": zombies,
    "stdin": stdin,
    "long": long,
}

kind = sys.argv[1]
comm.Barrier()
KINDS[kind]()
if kind != "slow-finish":
    assert comm.allreduce(1) == comm.size
