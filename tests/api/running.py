"""The controller as a process of its own, as it is in a cluster."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.api.admin import Object
from tests.forkserver import Forked


def free_port() -> int:
    """Below those that the system gives to outgoing connections, which could take it meanwhile."""
    while True:
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(23000, 32000)))
            return int(one.getsockname()[1])


def ask_metrics(port: int, authorization: str = "") -> tuple[int, str]:
    """Status and text of metrics that are served by TLS, whoever signed the certificate."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=20)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": authorization})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Controller:
    """Started when entered, ended when left; what it logged is shown where a test fails."""

    def __init__(self, kubeconfig: Path, *flags: str, wait: bool = True) -> None:
        self.port = free_port()
        self._command = [
            *("-m", "mpi_trainer.controller"),
            *("--kubeconfig", str(kubeconfig), f"--health-port={self.port}"),
            *flags,
        ]
        self._wait = wait
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__
        self.process: Forked | None = None

    @classmethod
    def alone(cls, kubeconfig: Path, namespace: str, *flags: str, wait: bool = True) -> Controller:
        """In one namespace, beside whatever else runs, without a lease."""
        own = (f"--namespaces={namespace}", "--leader-elect=false", "--beside-upstream")
        return cls(kubeconfig, *own, *flags, wait=wait)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            self._log.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if kind is not None:
            sys.stderr.write(f"--- controller's log\n{self.log()}")
        self._log.close()

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
        self.process = Forked(self._command, environment, self._log)
        deadline = time.monotonic() + 120
        while self._wait and not self._ready():
            assert self.process.poll() is None, f"the controller ended: {self.log()}"
            assert time.monotonic() < deadline, f"not ready after 120 s: {self.log()}"
            time.sleep(0.05)  # a look; the loop has a deadline

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(40)
        self.process = None
        return code

    def outcome(self) -> tuple[int, str]:
        """Run it to its own end; exit code and log."""
        self.start()
        assert self.process is not None
        code, text = self.process.wait(180), self.log()
        self.stop()
        self._log.close()
        return code, text

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def log(self) -> str:
        self._log.flush()
        self._log.seek(0)
        return self._log.read()

    def metric(self, name: str) -> float:
        """The value of one series, written as Prometheus writes it."""
        for line in self._read("/metrics").splitlines():
            if line.startswith(f"{name} "):
                return float(line.rpartition(" ")[2])
        return 0.0

    def answered(self, code: int) -> list[str]:
        """The series of API requests that were answered so."""
        series = f'rest_client_requests_total{{code="{code}"'
        return [line for line in self._read("/metrics").splitlines() if line.startswith(series)]

    def _ready(self) -> bool:
        try:
            return self._read("/readyz") == "ok"
        except (OSError, urllib.error.URLError):
            return False

    def _read(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            text: str = answer.read().decode()
        return text


def job(
    workers: int = 2, name: str = "pi", *, command: Sequence[str] = ("mpirun", "/pi"), **fields: Any
) -> Object:
    """An MPIJob; fields of the run policy by their names, others under `spec`."""
    spec: Object = fields.pop("spec", {})
    launcher = {"name": "launcher", "image": "x", "command": list(command)}
    replicas: Object = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}}
    }
    if workers:
        worker = {"name": "worker", "image": "x"}
        replicas["Worker"] = {
            "replicas": workers,
            "template": {"spec": {"containers": [worker], "terminationGracePeriodSeconds": 1}},
        }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {"runPolicy": fields, "mpiReplicaSpecs": replicas, **spec},
    }
