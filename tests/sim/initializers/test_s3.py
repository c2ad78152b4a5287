"""From S3 (CTL-9): a real server's objects, and refusals that one gives only now and then."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.initializers import parts
from tests import versitygw
from tests.dataserver import DataServer
from tests.sim.certificates import Authority
from tests.sim.initializers.fetching import Runner
from tests.versitygw import SECRET, S3Server

MIB = 1 << 20


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with versitygw.serving(tmp_path_factory.mktemp("s3") / "root") as server:
        bucket = server.root / "data"
        (bucket / "mnist/raw").mkdir(parents=True)
        (bucket / "mnist/labels").write_text("0123")
        (bucket / "mnist/raw/images").write_bytes(b"x" * MIB)
        (bucket / "mnist-other").write_text("of another folder")
        yield server


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("ExpiredToken", 400, "the credentials for s3://data/mnist have expired"),
        ("InvalidAccessKeyId", 403, "the server refuses s3://data/mnist: InvalidAccessKeyId"),
        ("AccessDenied", 403, "the server refuses s3://data/mnist: AccessDenied"),
        ("NoSuchBucket", 404, "there is no bucket data"),
    ],
)
def test_what_the_server_refuses_is_told_with_what_to_do(
    server: DataServer, runner: Runner, code: str, status: int, said: str
) -> None:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{SECRET}</Message></Error>"
    server.answers["/data"] = (status, body.encode())
    given = {"ENDPOINT": server.url, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": SECRET}
    done = runner.here("s3://data/mnist", **given)
    assert done.status == 1
    assert said in done.err
    assert "\n\nhint: " in done.err
    assert SECRET not in done.out + done.err


def test_without_credentials_nobody_is_asked_for_any(
    server: DataServer, runner: Runner, no_pauses: None
) -> None:
    server.answers["/data"] = (200, b"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
    done = runner.here("s3://data/mnist", ENDPOINT=server.url)
    assert done.status == 1
    assert server.authorizations() == {""}


def test_a_server_that_redirects_takes_no_credentials_along(
    server: DataServer, other: DataServer, runner: Runner, no_pauses: None
) -> None:
    server.redirects["/data"] = f"{other.url}/data"
    given = {"ENDPOINT": server.url, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": SECRET}
    assert runner.here("s3://data", **given).status == 1
    assert server.authorizations() != {""}
    assert other.authorizations() == {""}


def listing(*objects: str) -> bytes:
    more = "<KeyCount>1</KeyCount><IsTruncated>false</IsTruncated>"
    return f"<ListBucketResult>{more}{''.join(objects)}</ListBucketResult>".encode()


def listed(key: str, size: int, tag: str = "") -> str:
    date = "<LastModified>2026-01-01T00:00:00.123Z</LastModified>"
    return f"<Contents><Key>{key}</Key>{date}<Size>{size}</Size>{tag}</Contents>"


def test_the_marks_that_consoles_leave_for_folders_are_no_files(
    server: DataServer, runner: Runner
) -> None:
    objects = [listed(key, 0) for key in ("mnist/", "mnist/raw/", "mnist/raw/empty")]
    server.answers["/data"] = (200, listing(*objects))
    done = runner.here("s3://data/mnist", ENDPOINT=server.url)
    assert done.status == 0, done.err
    assert runner.files == {"raw/empty": b""}


@pytest.mark.parametrize("tag", ["", "<ETag>unquoted</ETag>"])
def test_an_object_that_is_replaced_while_it_is_read_is_not_taken(
    server: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    """Of servers that cannot be asked for one version: its parts would be of two."""
    monkeypatch.setattr(parts, "CHUNK", 256 << 10)
    (server.root / "data/mnist").mkdir(parents=True)
    (server.root / "data/mnist/train.bin").write_bytes(b"x" * MIB)
    server.answers["/data"] = (200, listing(listed("mnist/train.bin", MIB, tag)))
    server.tags = bool(tag)
    server.dates = (f"Thu, 01 Jan 2026 00:00:{n:02d} GMT" for n in range(60))
    done = runner.here("s3://data/mnist", ENDPOINT=server.url, PARALLEL="1")
    assert done.status == 1
    assert "an object of s3://data/mnist was replaced while it was read" in done.err
    assert runner.files == {}
    server.dates = itertools.repeat("Thu, 01 Jan 2026 00:00:00 GMT")
    assert runner.here("s3://data/mnist", ENDPOINT=server.url).status == bool(tag)


def test_a_name_says_nothing_of_what_is_wrong(
    server: DataServer, runner: Runner, no_pauses: None
) -> None:
    server.answers["/data"] = (200, listing(listed("certificates/NoSuchBucket", 1)))
    server.answers["/data/certificates/NoSuchBucket"] = (500, b"")
    done = runner.here("s3://data/certificates", ENDPOINT=server.url)
    assert done.status == 1
    assert "NoSuchBucket could not be read" in done.err
    assert "is not trusted" not in done.err
    assert "there is no bucket" not in done.err


@pytest.mark.full
def test_a_folder_of_a_bucket_is_fetched_and_its_neighbours_are_not(
    s3: S3Server, runner: Runner
) -> None:
    done = runner.here("s3://data/mnist", **s3.variables)
    assert done.status == 0, done.err
    assert runner.files == {"labels": b"0123", "raw/images": b"x" * MIB}
    assert "already" in runner.here("s3://data/mnist", **s3.variables).out


@pytest.mark.full
def test_a_single_object_and_the_names_of_openshift_ai_connections(
    s3: S3Server, runner: Runner
) -> None:
    names = {"ENDPOINT": "AWS_S3_ENDPOINT"}
    given = {names.get(name, f"AWS_{name}"): value for name, value in s3.variables.items()}
    done = runner.here("s3://data/mnist/labels", AWS_DEFAULT_REGION="us-east-1", **given)
    assert done.status == 0, done.err
    assert runner.files == {"labels": b"0123"}


@pytest.mark.full
def test_a_real_server_refuses_a_wrong_key_and_knows_no_such_bucket(
    s3: S3Server, runner: Runner
) -> None:
    wrong = {**s3.variables, "SECRET_ACCESS_KEY": "wrong"}
    assert "the server refuses s3://data/mnist" in runner.here("s3://data/mnist", **wrong).err
    assert "there is no bucket none" in runner.here("s3://none/x", **s3.variables).err
    assert "has no files to fetch" in runner.here("s3://data/none", **s3.variables).err


@pytest.mark.full
def test_a_killed_download_of_an_object_goes_on(s3: S3Server, runner: Runner) -> None:
    path = s3.root / "data/large/train.bin"
    path.parent.mkdir()
    blocks = [hashlib.sha256(b"%d" % n).digest() * 32768 for n in range(300)]
    path.write_bytes(b"".join(blocks))
    first = runner.process("s3://data/large", PARALLEL="1", **s3.variables)
    deadline = time.monotonic() + 60
    noted = ".mpi-trainer-staging-*/*.done"
    while not any(p.stat().st_size > 3 for p in runner.target.glob(noted)):
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.005)
    first.kill()
    first.communicate()
    assert (runner.files, runner.marker) == ({}, None)
    done = runner.here("s3://data/large", **s3.variables)
    assert done.status == 0, done.err
    assert (runner.target / "train.bin").read_bytes() == path.read_bytes()
    fetched = float(done.out.split("; ")[-1].split(" MiB")[0])
    assert fetched <= 300 - 64


@pytest.mark.full
def test_a_certificate_needs_its_authority(tmp_path: Path, runner: Runner) -> None:
    authority = Authority()
    pair = authority.pair("s3", "127.0.0.1")
    certificate, key, bundle = (tmp_path / name for name in ("cert.pem", "key.pem", "ca.pem"))
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    bundle.write_bytes(authority.certificate)
    with versitygw.serving(tmp_path / "root", (certificate, key)) as s3:
        (s3.root / "data").mkdir()
        (s3.root / "data/a").write_text("a")
        refused = runner.here("s3://data", **s3.variables)
        assert refused.status == 1
        assert "is not trusted" in refused.err
        done = runner.here("s3://data", CA_BUNDLE=str(bundle), **s3.variables)
        assert done.status == 0, done.err
