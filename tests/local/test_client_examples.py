"""The programs of examples/clients, as they are: by curl, by grpcurl, and in Go (SC-004, DOC-1)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml

from mpi_trainer.local.jobs import store
from tests.api.running import free_port
from tests.local.odh import MARK, ODH, until
from tools.cluster.build import build
from tools.cluster.components import GRPCURL

CLIENTS = Path(__file__).parents[2] / "examples/clients"
HELLO = ("hello", "-w", "2", "-s", "1", "--", "echo", "hello")

pytestmark = pytest.mark.timeout(240)


class Place(msgspec.Struct, frozen=True):
    """A server of this machine's jobs, as a process of its own, and the folder of its caller."""

    folder: Path
    rest: int
    rpc: int
    token: str

    def run(self, *words: str, token: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env={**os.environ, **env, "TOKEN": token or self.token},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MPI_TRAINER_BACKEND", "local")
    monkeypatch.setenv(MARK, tmp_path.name)
    made = subprocess.run(
        [ODH, "mpijob", "create", "--dry-run", *HELLO], capture_output=True, text=True, check=True
    )
    (tmp_path / "job.yaml").write_text(made.stdout)
    (tmp_path / "job.json").write_text(json.dumps(yaml.safe_load(made.stdout)))
    ports, address = (free_port(), free_port()), tmp_path / "address"
    words = [str(ODH), "dashboard", "--no-browser", "--port", str(ports[0]), "--grpc-port"]
    with (
        address.open("w") as output,
        subprocess.Popen(
            [*words, str(ports[1])], stdout=output, stderr=subprocess.DEVNULL
        ) as server,
    ):
        try:
            until("its address", lambda: "token=" in address.read_text(), 150)
            yield Place(tmp_path, *ports, address.read_text().partition("token=")[2].split()[0])
        finally:
            server.terminate()
            for one in store.folders():
                store.remove(one)


def test_by_curl(place: Place) -> None:
    script = str(CLIENTS / "curl/hello.sh")
    words = ("bash", script, f"http://127.0.0.1:{place.rest}", "default", "hello", "job.yaml")
    done = place.run(*words)
    assert done.returncode == 0, done
    assert '"text":"hello"' in done.stdout and "event: end" in done.stdout, done.stdout
    refused = place.run(*words, token="made-up")
    assert refused.returncode and "made-up" not in refused.stdout + refused.stderr


@pytest.mark.full
def test_by_grpcurl(place: Place) -> None:
    """Which knows of the API what the server's reflection tells it."""
    path = f"{build([GRPCURL])['grpcurl'].bin}:{os.environ['PATH']}"
    script = str(CLIENTS / "grpcurl/hello.sh")
    words = ("bash", script, f"127.0.0.1:{place.rpc}", "default", "hello", "job.json")
    done = place.run(*words, PATH=path)
    assert done.returncode == 0, done
    assert "mpitrainer.v1.MPIJobs" in done.stdout.splitlines()
    assert '"state": "JOB_STATE_SUCCEEDED"' in done.stdout, done.stdout
    assert '"text": "hello"' in done.stdout, done.stdout
    refused = place.run(*words, PATH=path, token="made-up")
    assert "Unauthenticated" in refused.stderr and "made-up" not in refused.stderr


@pytest.mark.full
def test_in_go(place: Place) -> None:
    program = place.folder / "hello"
    words = ["go", "build", "-mod=readonly", "-o", str(program), "."]
    subprocess.run(words, cwd=CLIENTS / "go", check=True)
    asked = (str(program), "-server", f"127.0.0.1:{place.rpc}", "job.yaml")
    done = place.run(*asked)
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert [lines[-3], *sorted(lines[-2:])] == ["JOB_STATE_SUCCEEDED", "0 hello", "1 hello"]
    again = place.run(*asked)
    assert again.returncode == 1
    assert "error: job default/hello already exists" in again.stderr and "hint: " in again.stderr
    refused = place.run(str(program), "-server", "192.0.2.1:9090", "job.yaml")
    assert "would be sent in the clear" in refused.stderr
