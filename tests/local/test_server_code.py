"""Code that is sent with a job over HTTP runs in it, with real mpirun, and goes with it."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_trainer.api.kinds.mpijob import RunPolicy, to_wire
from mpi_trainer.local.jobs import code_folders, store
from mpi_trainer.local.paths import code_dir
from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.server.callers import Loopback
from mpi_trainer.server.uploads import LARGEST_UPLOAD
from tests.local.odh import MARK, until
from tests.rest import Form, Rest, served

pytestmark = pytest.mark.timeout(240)
JOBS = "/api/v1/namespaces/default/mpijobs"
PROGRAM = b"""
import words
from mpi4py import MPI
from pathlib import Path
rank = MPI.COMM_WORLD.Get_rank()
Path(f"made-{rank}").write_text("x")
print(f"rank {rank} says {words.WORD}", flush=True)
"""
FILES = {"src/train.py": PROGRAM, "src/words.py": b"WORD = 'hello'\n", "run.sh": b"#!/bin/sh\nls"}


@pytest.fixture(scope="module")
def loopback() -> Loopback:
    return Loopback(LocalBackend(), "odh-session")


@pytest.fixture(scope="module")
def port(loopback: Loopback) -> Iterator[int]:
    with served(loopback) as number:
        yield number


@pytest.fixture
def server(
    port: int, loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rest]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(MARK, tmp_path.name)
    yield Rest(port, loopback.token)
    for folder in store.folders():
        store.remove(folder)


def manifest(name: str, *, suspend: bool = False) -> dict[str, Any]:
    words = ("mpirun", "python", "src/train.py")
    policy = RunPolicy(suspend=suspend)
    made = to_wire(NewJob(name, words, workers=2, run_policy=policy).mpijob())
    made["metadata"] = {"name": name}
    return made


def archive(names: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for name, data in names.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            packed.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def ended(server: Rest, name: str) -> dict[str, Any]:
    found = until(
        "the job ends",
        lambda: (job := server.get(f"{JOBS}/{name}"))["state"] in ("Succeeded", "Failed") and job,
    )
    assert isinstance(found, dict)
    return found


def test_code_runs_is_copied_with_its_job_and_goes_with_it(server: Rest) -> None:
    form = Form().job(manifest("one")).files(FILES)
    made = server.send(JOBS, form)
    assert made.status == 201, made
    job = ended(server, "one")
    assert job["state"] == "Succeeded", server.ask("GET", f"{JOBS}/one/logs")
    said = server.ask("GET", f"{JOBS}/one/logs").body
    assert b"rank 0 says hello" in said and b"rank 1 says hello" in said
    (folder,) = code_dir().iterdir()
    work = Path(code_folders.working_directory(str(folder)))
    assert (work / "made-0").exists() and (work / "run.sh").stat().st_mode & 0o100
    assert code_dir().stat().st_mode & 0o077 == 0

    assert server.ask("POST", f"{JOBS}/one/clone", {"name": "two"}).status == 201
    assert server.ask("DELETE", f"{JOBS}/one").status == 204
    assert not folder.exists(), "the code of a job that is gone is gone"
    assert ended(server, "two")["state"] == "Succeeded"
    assert server.ask("POST", f"{JOBS}/two/restart").status == 200
    assert ended(server, "two")["state"] == "Succeeded"
    assert server.ask("DELETE", f"{JOBS}/two").status == 204
    assert [*code_dir().iterdir()] == []


def test_an_archive_comes_by_curl_as_documented(server: Rest, tmp_path: Path) -> None:
    import yaml

    (tmp_path / "mpijob.yaml").write_text(yaml.safe_dump(manifest("curled")))
    (tmp_path / "code.tar.gz").write_bytes(archive(FILES))
    login = f"Authorization: Bearer {server.token}"
    address = f"http://127.0.0.1:{server.port}{JOBS}"
    words = ["-F", "job=@mpijob.yaml", "-F", "archive=@code.tar.gz"]
    subprocess.run(
        ["curl", "-sS", "--fail-with-body", "-H", login, *words, address], cwd=tmp_path, check=True
    )
    assert ended(server, "curled")["state"] == "Succeeded"


def test_what_cannot_travel_is_refused_and_leaves_nothing(server: Rest) -> None:
    job = manifest("bad", suspend=True)
    cases = (
        (Form().job(job).files({"../evil.py": b""}), 422, "leads out of the folder"),
        (Form().job(job).archive(archive({"/etc/passwd": b""})), 422, "at the root"),
        (Form().job(job).files({"big": os.urandom(1 << 20)}), 422, "at most 768 KiB"),
        (Form().job(job).files({".git/config": b""}), 422, "holds no file"),
        (Form().files(FILES), 400, "no part `job`"),
        (Form().job(job | {"spec": {}}).files(FILES), 422, "spec"),
        (Form().job(job).files({"x": bytes(LARGEST_UPLOAD)}), 413, "larger than 16 MiB"),
    )
    for form, status, why in cases:
        reply = server.send(JOBS, form)
        assert reply.status == status and why in reply.data["detail"], reply
    large = server.ask("POST", JOBS, b" " * (2 << 20), {"Content-Type": "application/yaml"})
    assert large.status == 413 and "larger than 1 MiB" in large.data["detail"]
    elsewhere = JOBS.replace("mpijobs", "trainjobs")
    assert server.send(elsewhere, Form().job(job).files(FILES)).status == 415
    assert server.get(JOBS)["items"] == []
    assert not code_dir().exists() or [*code_dir().iterdir()] == []

    assert server.send(JOBS, Form().job(job).files(FILES)).status == 201
    assert server.send(JOBS, Form().job(job).files(FILES)).status == 409
    assert len([*code_dir().iterdir()]) == 1, "what was unpacked for the second is gone"


def test_what_odhignore_says_holds_up_nobody(server: Rest) -> None:
    """A regular expression that tries a name for hours holds up the whole server."""
    hostile = {".odhignore": b"*a" * 40 + b"*b\n[z-a]\n", "a" * 255: b"print()"}
    began = time.monotonic()
    job = manifest("stars", suspend=True)
    assert server.send(JOBS, Form().job(job).files(hostile)).status == 201
    assert time.monotonic() - began < 10


def test_folders_that_belong_to_no_job_are_cleared_away(server: Rest) -> None:
    assert server.send(JOBS, Form().job(manifest("kept", suspend=True)).files(FILES)).status == 201
    (kept,) = code_dir().iterdir()
    left = Path(code_folders.unpacked(archive(FILES)))
    for folder in (kept, left):
        os.utime(folder, (0, time.time() - 2 * store.LEFTOVER_SECONDS))
    store.clear_leftovers()
    assert kept.exists() and not left.exists()
    code_folders.remove("/")
    code_folders.remove(str(code_dir().parent))
    assert kept.exists()
