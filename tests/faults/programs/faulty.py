"""A training program with one mistake, which its first word names; on rank 1 unless it says so.

Mistakes are made as people make them, with the real libraries, so that what is printed is what
Python, NumPy and the kernel print. The other ranks go on to a collective and wait there.
"""

import ctypes
import faulthandler
import gzip
import http.server
import json
import os
import pickle
import resource
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path

import numpy
from mpi4py import MPI

VICTIM = 1
SCRATCH = Path("/state/bin")  # a file system of the victim's own where the test says so
comm = MPI.COMM_WORLD


class NoBatchesLeft(Exception):
    pass


def shared_library_missing() -> None:
    ctypes.CDLL("libfastmath.so.3")


def permission_denied() -> None:
    secret = Path("/state/labels.csv")
    secret.write_text("cat,1\n")
    secret.chmod(0o600)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    secret.read_text()


def fill_scratch() -> None:
    (SCRATCH / "checkpoint.bin").write_bytes(bytes(4 << 20))


def shared_memory_full() -> None:
    buffer = shared_memory.SharedMemory(create=True, size=8 << 20)
    assert buffer.buf is not None
    buffer.buf[:] = bytes(8 << 20)


def loss_is_nan() -> None:
    loss = float("inf") - float("inf")
    assert numpy.isfinite(loss), f"loss is {loss} at step 17"


def numbers_raise() -> None:
    numpy.seterr(all="raise")
    numpy.log(numpy.zeros(3))


def bad_csv() -> None:
    for line in ("0.1,0.2", "0.3,n/a"):
        [float(field) for field in line.split(",")]


def encoding() -> None:
    Path("/state/names.txt").write_bytes("Zoë\n".encode("latin-1"))
    Path("/state/names.txt").read_text(encoding="utf-8")


def cut_archive() -> None:
    whole = gzip.compress(os.urandom(4096))
    Path("/state/part.gz").write_bytes(whole[:1000])
    with gzip.open("/state/part.gz") as part:
        part.read()


def address_in_use() -> None:
    first = socket.create_server(("127.0.0.1", 0))
    socket.create_server(first.getsockname()[:2])


def fetch(status: int) -> None:
    """From a data source that answers with this status; with 0 it never answers."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not status:
                time.sleep(60)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/datasets/train.parquet"
    urllib.request.urlopen(url, timeout=2).read()


def memory_error() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    numpy.ones((100_000, 100_000))


def open_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1000)]
    assert held


def recursion(depth: int = 0) -> int:
    return recursion(depth + 1) + 1


def other_collective() -> None:
    """The others reduce, this one gathers: all wait for ever."""
    comm.recv(source=2, tag=77)


def stack_dump() -> None:
    """A program that watches itself: it shows its stack and leaves when a step takes too long."""
    faulthandler.dump_traceback_later(2, exit=True)
    comm.recv(source=2, tag=77)


FAULTS: dict[str, Callable[[], object]] = {
    "module-missing": lambda: __import__("torchvision_extras"),
    "module-incompatible": lambda: numpy.bool8,  # type: ignore[attr-defined]
    "shared-library-missing": shared_library_missing,
    "file-missing": lambda: Path("/data/part-00001.csv").read_text(),
    "permission-denied": permission_denied,
    "read-only": lambda: (SCRATCH / "checkpoint.bin").write_bytes(b"1"),
    "disk-full": fill_scratch,
    "shared-memory-full": shared_memory_full,
    "shapes": lambda: numpy.zeros((32, 128)) @ numpy.zeros((64, 10)),
    "broadcast": lambda: numpy.zeros((32, 128)) + numpy.zeros((31, 128)),
    "reshape": lambda: numpy.zeros(1000).reshape(32, 32),
    "loss-is-nan": loss_is_nan,
    "floating-point-error": numbers_raise,
    "key-error": lambda: {"image": 1}["label"],
    "bad-json": lambda: json.loads('{"epochs": 3, "rate": 0.1'),
    "bad-csv": bad_csv,
    "encoding": encoding,
    "cut-archive": cut_archive,
    "damaged-checkpoint": lambda: pickle.loads(b"<html>404</html>"),
    "address-in-use": address_in_use,
    "name-unknown": lambda: socket.create_connection(("datasets.example.invalid", 443)),
    "connection-refused": lambda: socket.create_connection(("127.0.0.1", 9)),
    "token-refused": lambda: fetch(401),
    "access-forbidden": lambda: fetch(403),
    "object-missing": lambda: fetch(404),
    "too-many-requests": lambda: fetch(429),
    "source-broken": lambda: fetch(503),
    "source-silent": lambda: fetch(0),
    "memory-error": memory_error,
    "open-files": open_files,
    "recursion": recursion,
    "own-exception": lambda: (_ for _ in ()).throw(NoBatchesLeft("shard 7 is empty")),
    "variable-missing": lambda: os.environ["MASTER_ADDR_OF_STORE"],
    "child-failed": lambda: subprocess.run(["sh", "-c", "exit 4"], check=True),
    "exit-with-words": lambda: sys.exit("no images below /data/train"),
    "other-collective": other_collective,
    "stack-dump": stack_dump,
}

word = sys.argv[1]
comm.Barrier()
if comm.rank == 0:
    Path("/state/running").touch()
time.sleep(0.3)
if comm.rank == VICTIM:
    FAULTS[word]()
comm.allreduce(1)
time.sleep(200)
