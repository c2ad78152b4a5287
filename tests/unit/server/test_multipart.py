"""Forms with a job and its code, as curl and browsers send them, and as nobody should."""

from __future__ import annotations

import contextlib
import time

import pytest

from mpi_trainer.server.multipart import Part, boundary, parts
from mpi_trainer.server.problems import Refused
from mpi_trainer.server.uploads import job_with_code

TYPE = "multipart/form-data; boundary=XX"
JOB = b"""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: one}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: i, command: [mpirun, x]}]}}}
    Worker: {replicas: 1, template: {spec: {containers: [{name: w, image: i}]}}}
"""


def form(*given: tuple[str, bytes]) -> bytes:
    """Each with what stands behind `form-data`."""
    made = b"".join(
        b"--XX\r\nContent-Disposition: form-data%s\r\n\r\n%s\r\n" % (head.encode(), body)
        for head, body in given
    )
    return made + b"--XX--\r\n"


def read(body: bytes) -> list[Part]:
    return [*parts(body, boundary(TYPE))]


def test_names_come_as_browsers_and_curl_write_them() -> None:
    found = read(
        form(
            ('; name="files"; filename="src/a b.py"', b"a"),
            ('; name="files"; filename="q%22.py"', b""),
            ("; name=files; filename*=UTF-8''src%2F%C3%A4.py", b"\r\n--X\r\n"),
            ('; name="files"; filename="a\\"b.py"', b"--X"),
        )
    )
    assert [(one.file_name, bytes(one.content)) for one in found] == [
        (b"src/a b.py", b"a"),
        (b'q".py', b""),
        ("src/ä.py".encode(), b"\r\n--X\r\n"),
        (b'a"b.py', b"--X"),
    ]
    assert boundary('multipart/form-data; charset=x; boundary="a b"') == b"a b"


@pytest.mark.parametrize(
    "body",
    [b"", b"--XX", b"--XX\r\n\r\n", b"text", form(("", b"x")), form(("; name=a", b"x"))[:-8],
     b"--XX junk\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--XX--",
     b"--XX\r\nA: " + b"b" * 9000 + b"\r\n\r\nx\r\n--XX--"],
)  # fmt: skip
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        read(body)


def test_the_time_grows_with_the_bytes_alone() -> None:
    size = 8 << 20
    for body in (
        b"--XX\r\n" * (size // 6),
        b"\r\n--X" * (size // 5),
        form(("; name=a", b"\r\n--X" * (size // 5))),
        form(('; name="' + "\\" * 4000, b"")),
        form((";a=" * 2000, b"")),
        form(("; name=a", b"")) * (size // 60),
    ):
        began = time.process_time()
        with contextlib.suppress(Refused):
            read(body)
        assert time.process_time() - began < 3


def test_a_job_comes_with_its_files() -> None:
    body = form(
        ('; name="job"; filename="job.yaml"', JOB),
        ('; name="files"; filename="run.sh"', b"#!/bin/sh\n"),
        ('; name="files"; filename="src/x.py"', b"x"),
    )
    job, code = job_with_code(body, TYPE, "team")
    assert (job.name, job.namespace, code.files) == ("one", "team", 2)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([("; name=files; filename=a", b"x")], "no part `job`"),
        ([("; name=job", JOB)], "either parts `files` or one"),
        ([("; name=job", JOB), ("; name=job", JOB)], "too many"),
        ([("; name=job", JOB), ("; name=other", b"")], "'other'"),
        ([("; name=job", JOB), ("; name=archive", b""), ("; name=files; filename=a", b"")], "eith"),
    ],
)
def test_a_form_that_is_not_whole_is_refused(given: list[tuple[str, bytes]], why: str) -> None:
    with pytest.raises(Refused, match=why):
        job_with_code(form(*given), TYPE, "team")
