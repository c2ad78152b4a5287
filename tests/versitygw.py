"""A real S3 server over a folder, on this machine's own address; built on first use."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tools.cluster.build import build
from tools.cluster.components import VERSITYGW

KEY = "test-access-key"
SECRET = "test-secret-access-key"


class S3Server(msgspec.Struct, frozen=True):
    """`root/BUCKET/KEY` are the objects."""

    root: Path
    endpoint: str

    @property
    def variables(self) -> dict[str, str]:
        return {"ENDPOINT": self.endpoint, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}


@contextmanager
def serving(root: Path, certificate: tuple[Path, Path] | None = None) -> Iterator[S3Server]:
    """`certificate`: PEM files of it and of its key."""
    program = build([VERSITYGW])[VERSITYGW.name].bin / "versitygw"
    root.mkdir()
    port = _free_port()
    tls = ["--cert", str(certificate[0]), "--key", str(certificate[1])] if certificate else []
    server = subprocess.Popen(
        [program, "--port", f"127.0.0.1:{port}", "--quiet", *tls, "posix", "--nometa", str(root)],
        env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(server, port)
        yield S3Server(root, f"{'https' if certificate else 'http'}://127.0.0.1:{port}")
    finally:
        server.kill()
        server.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert server.poll() is None and time.monotonic() < deadline, "versitygw did not start"
            time.sleep(0.05)
