"""An initializer ends when it is asked to, whatever a server does (CTL-9)."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim.initializers.fetching import Runner


@pytest.fixture
def trickling() -> Iterator[tuple[int, threading.Event]]:
    """The port of a server that promises a megabyte and sends a byte now and then, and whether
    somebody has asked it for data."""
    asked = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        size = 1 << 20
        try:
            while request := connection.recv(65536):
                start, _, end = request.partition(b"bytes=")[2].split()[0].decode().partition("-")
                length = int(end) + 1 - int(start)
                lines = (
                    "HTTP/1.1 206 Partial Content",
                    f"Content-Range: bytes {start}-{end}/{size}",
                    f"Content-Length: {length}",
                    'ETag: "1"',
                )
                connection.sendall("\r\n".join((*lines, "", "")).encode())
                for _ in range(length):
                    connection.sendall(b"x")
                    if length > 1:
                        asked.set()
                        time.sleep(0.05)
        except OSError:
            pass
        finally:
            connection.close()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1], asked
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def test_sigterm_ends_it_while_a_server_trickles(
    trickling: tuple[int, threading.Event], runner: Runner
) -> None:
    port, asked = trickling
    running = runner.process(f"http://127.0.0.1:{port}/train.bin")
    try:
        assert asked.wait(60)
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=20)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 143
    assert runner.files == {}


def test_kill_9_of_a_local_job_ends_what_fetches_its_data(
    trickling: tuple[int, threading.Event], runner: Runner
) -> None:
    port, asked = trickling
    script = f"""
import os
from mpi_trainer.local.execute import initializers

class Client:
    fileno = staticmethod(lambda: os.pipe()[0])
    report = staticmethod(lambda reports: None)

given = {{"STORAGE_URI": "http://127.0.0.1:{port}/train.bin", "TARGET_DIR": {str(runner.target)!r}}}
initializers.fetch_all((initializers.Fetch("pod", "dataset", given),), Client())
"""
    job = subprocess.Popen([sys.executable, "-c", script])
    try:
        assert asked.wait(60)
        (fetching,) = children(job.pid)
    finally:
        job.kill()
        job.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{fetching}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
