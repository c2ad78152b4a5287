"""Addresses, redirects and credentials: a server out there is not to be trusted (CTL-9, SEC)."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from mpi_trainer.initializers import parts
from mpi_trainer.initializers.sources import http
from tests.dataserver import COMMIT, DataServer
from tests.sim.initializers.fetching import Runner

TOKEN = "hf_only-for-home"


@pytest.fixture
def repository(server: DataServer) -> DataServer:
    """Of a small file, and a large one that lies elsewhere."""
    root = server.root / "ai/data"
    (root / "sub").mkdir(parents=True)
    (root / "config.json").write_text("{}")
    (root / "sub/large.safetensors").write_bytes(b"x" * (1 << 20))
    (root / "old.bin").write_text("pickle")
    return server


def test_a_dataset_of_the_hub_comes_with_its_checksums(
    repository: DataServer, runner: Runner
) -> None:
    done = runner.here("hf://ai/data", ENDPOINT=repository.url)
    assert done.status == 0, done.err
    assert sorted(runner.files) == ["config.json", "old.bin", "sub/large.safetensors"]
    read = [path for path, _ in repository.requests if "/resolve/" in path]
    assert read
    assert all(f"/resolve/{COMMIT}/" in path for path in read)


def test_a_folder_of_a_repository_and_patterns(repository: DataServer, runner: Runner) -> None:
    assert runner.here("hf://ai/data@main/sub", ENDPOINT=repository.url).status == 0
    assert list(runner.files) == ["large.safetensors"]
    given = {"ENDPOINT": repository.url, "IGNORE_PATTERNS": "*.bin, sub/*"}
    assert runner.here("hf://ai/data", **given).status == 0
    assert list(runner.files) == ["config.json"]


def test_a_model_comes_without_what_could_run_code(repository: DataServer, runner: Runner) -> None:
    assert runner.here("hf://ai/data", "model", ENDPOINT=repository.url).status == 0
    assert sorted(runner.files) == ["config.json", "sub/large.safetensors"]


@pytest.mark.parametrize("damaged", ["config.json", "sub/large.safetensors"])
def test_a_file_that_differs_from_the_listing_is_not_taken(
    repository: DataServer, runner: Runner, damaged: str
) -> None:
    repository.listed = repository.tree("ai/data")
    path = repository.root / "ai/data" / damaged
    path.write_bytes(bytes(path.stat().st_size))
    done = runner.here("hf://ai/data", ENDPOINT=repository.url)
    assert done.status == 1
    assert f"{damaged} has the checksum" in done.err
    assert runner.files == {}


def test_a_token_goes_to_its_hub_and_not_where_files_lie(
    repository: DataServer, other: DataServer, runner: Runner
) -> None:
    repository.token, repository.elsewhere = TOKEN, other.url
    done = runner.here("hf://ai/data", ENDPOINT=repository.url, ACCESS_TOKEN=TOKEN)
    assert done.status == 0, done.err
    assert repository.authorizations() == {f"Bearer {TOKEN}"}
    assert other.requests
    assert other.authorizations() == {""}
    assert TOKEN not in done.out + done.err
    assert "s3cr3t" not in done.out + done.err


def test_a_listing_that_goes_on_elsewhere_is_not_followed(
    repository: DataServer, other: DataServer, runner: Runner
) -> None:
    repository.next_page = f"{other.url}/api/datasets/ai/data/tree/main"
    done = runner.here("hf://ai/data", ENDPOINT=repository.url, ACCESS_TOKEN=TOKEN)
    assert done.status == 1
    assert "has a listing that leads elsewhere" in done.err
    assert other.requests == []


def test_a_listing_without_end_is_given_up(
    repository: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpi_trainer.initializers.sources.hub._MOST_PAGES", 20)
    repository.listed = []
    repository.next_page = f"{repository.url}/api/datasets/ai/data/tree/main"
    done = runner.here("hf://ai/data", ENDPOINT=repository.url)
    assert "has a listing without end" in done.err
    assert len(repository.requests) == 20


def test_an_answer_without_end_is_not_kept_in_memory(
    repository: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpi_trainer.initializers.sources.hub._LONGEST", 64 << 10)
    entry = repository.tree("ai/data")[0]
    repository.listed = [{**entry, "path": f"{n}"} for n in range(2000)]
    done = runner.here("hf://ai/data", ENDPOINT=repository.url)
    assert "has a listing without end" in done.err
    asked = [headers["accept-encoding"] for _, headers in repository.requests]
    assert asked == ["identity", "identity"]


@pytest.mark.parametrize("size", [-5, "5", None, 1.5, True, [1]])
def test_a_listing_with_sizes_that_are_none_is_refused(
    repository: DataServer, runner: Runner, size: object
) -> None:
    repository.listed = [{**repository.tree("ai/data")[0], "size": size}]
    done = runner.here("hf://ai/data", ENDPOINT=repository.url)
    assert (done.status, "cannot be read" in done.err) == (1, True)


def test_a_hostile_listing_is_refused(repository: DataServer, runner: Runner) -> None:
    entry = repository.tree("ai/data")[0]
    for path in ("../../etc/cron.d/x", "/etc/passwd", "a/../../b"):
        repository.listed = [{**entry, "path": path}]
        done = runner.here("hf://ai/data", ENDPOINT=repository.url)
        assert (done.status, "has a file named" in done.err) == (1, True)
    repository.listed = [{"type": "file"}]
    assert "cannot be read" in runner.here("hf://ai/data", ENDPOINT=repository.url).err
    assert not runner.target.exists()


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("hf://ai/none", "is not there, or the token may not read it"),
        ("hf://ai/data@gone", "has no revision gone"),
        ("hf://ai", "is no repository of the hub"),
    ],
)
def test_what_the_hub_does_not_have(
    repository: DataServer, runner: Runner, uri: str, said: str
) -> None:
    done = runner.here(uri, ENDPOINT=repository.url)
    assert done.status == 1
    assert said in done.err
    assert "\n\nhint: " in done.err


def test_a_refusal_that_repeats_the_token_does_not_get_into_the_log(
    repository: DataServer, runner: Runner
) -> None:
    repository.token = "another"
    for uri in ("hf://ai/data", f"{repository.url}/ai/data/config.json"):
        done = runner.here(uri, ENDPOINT=repository.url, ACCESS_TOKEN=TOKEN)
        assert done.status == 1
        assert "ACCESS_TOKEN" in done.err
        assert TOKEN not in done.out + done.err


def test_a_credential_may_end_with_a_line_and_have_no_line_within(
    repository: DataServer, runner: Runner
) -> None:
    """What refuses it would repeat it in the log, written so that it is not known again."""
    repository.token = TOKEN
    for uri in ("hf://ai/data", f"{repository.url}/ai/data/config.json"):
        given = {"ENDPOINT": repository.url, "ACCESS_TOKEN": f"{TOKEN}\n"}
        assert runner.here(uri, **given).status == 0
        done = runner.here(uri, **{**given, "ACCESS_TOKEN": "secret\nS3CR3T"})
        assert done.status == 1
        assert "ACCESS_TOKEN has characters that cannot be meant" in done.err
        assert "S3CR3T" not in done.out + done.err


def test_credentials_are_read_from_a_mounted_secret(
    repository: DataServer, runner: Runner, tmp_path: Any
) -> None:
    repository.token = TOKEN
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/ACCESS_TOKEN").write_text(f"{TOKEN}\n")
    given = {"ENDPOINT": repository.url, "CREDENTIALS_DIR": str(tmp_path / "secret")}
    assert runner.here("hf://ai/data", **given).status == 0


def test_a_server_that_knows_parts_and_no_length_is_asked_for_the_whole(
    server: DataServer, runner: Runner
) -> None:
    (server.root / "train.bin").write_bytes(b"x" * 1000)
    server.total = "*"
    assert runner.here(f"{server.url}/train.bin").status == 0
    assert runner.files == {"train.bin": b"x" * 1000}


def test_a_file_of_which_nobody_says_the_version_comes_in_one_answer(
    server: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of two versions would be one file, of the right size."""
    monkeypatch.setattr(parts, "CHUNK", 256 << 10)
    (server.root / "train.bin").write_bytes(b"x" * (1 << 20))
    server.tags = False
    assert runner.here(f"{server.url}/train.bin").status == 0
    assert runner.files == {"train.bin": b"x" * (1 << 20)}
    assert [headers.get("range") for _, headers in server.requests] == ["bytes=0-0", None]


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/x",
        "http://[::ffff:169.254.169.254]/x",
        "http://2852039166/x",
        "gopher://127.0.0.1",
        "http://",
        "http://[x",
        "//[",
        "http://host:99999/",
        "http://100.100.100.200/latest/meta-data/",
        "http://168.63.129.16/machine",
        "http://[64:ff9b::a9fe:a9fe]/latest/meta-data/",
        "http://[2002:a9fe:a9fe::1]/latest/meta-data/",
    ],
)
def test_a_redirect_leads_to_no_file_and_no_metadata(
    server: DataServer, runner: Runner, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.redirects["/train.bin"] = address
    reached: list[Any] = []
    connect = socket.create_connection

    def connecting(where: tuple[str, int], *rest: Any) -> socket.socket:
        reached.append(where[0])
        return connect(where, *rest)

    monkeypatch.setattr(socket, "create_connection", connecting)
    done = runner.here(f"{server.url}/train.bin")
    assert done.status == 1
    assert "redirect" in done.err
    assert set(reached) == {"127.0.0.1"}


def test_a_redirect_from_outside_leads_to_nothing_inside(
    server: DataServer, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a name that stands for a public address, and an answer that leads to 127.0.0.1."""
    port = int(server.url.rpartition(":")[2])
    server.redirects["/train.bin"] = f"http://127.0.0.1:{port}/inside"
    resolve, connect = socket.getaddrinfo, socket.create_connection

    def resolved(host: str, *rest: Any, **named: Any) -> Any:
        found = "93.184.215.14" if host == "data.example.com" else host
        return resolve(found, *rest, **named)

    def connected(where: tuple[str, int], *rest: Any) -> socket.socket:
        return connect(("127.0.0.1", port), *rest)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr("mpi_trainer.initializers.sources.http.socket.create_connection", connected)
    done = runner.here(f"http://data.example.com:{port}/train.bin")
    assert done.status == 1
    assert "a redirect leads to an address inside this machine" in done.err
    assert [path for path, _ in server.requests] == ["/train.bin"]


def test_redirects_without_end_are_given_up(server: DataServer, runner: Runner) -> None:
    server.redirects["/a"] = "/a"
    assert "more than 8 redirects" in runner.here(f"{server.url}/a").err
    assert len(server.requests) == 8


def test_connections_are_few_wherever_redirects_lead(
    server: DataServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server.root / "a").write_text("x")
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *more, **named: resolve("127.0.0.1", *more, **named)
    )
    client = http.Client(server.url)
    port = server.url.rpartition(":")[2]
    for n in range(30):
        server.redirects["/r"] = f"http://host-{n}:{port}/a"
        assert list(client.get(f"{server.url}/r", {}).pieces()) == [b"x"]
        assert len(client._made) <= 4
    client.close()
    assert client._made == set()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"STORAGE_URI": ""}, "STORAGE_URI is not set"),
        ({"STORAGE_URI": "https://me:secret@host/x"}, "has a user name or password in it"),
        ({"STORAGE_URI": "ftp://host/x"}, "is of the scheme 'ftp'"),
        ({"STORAGE_URI": "https://host:x/y"}, "cannot be read"),
        ({"STORAGE_URI": "https://host/a\0b"}, "STORAGE_URI has characters"),
        ({"STORAGE_URI": "hf://a/b", "TARGET_DIR": "/tmp/a\0b"}, "TARGET_DIR has characters"),
        ({"STORAGE_URI": "s3:/bucket/x"}, "is of the scheme 's3'"),
        ({"STORAGE_URI": "S3:///x"}, "names no bucket"),
        ({"STORAGE_URI": "hf://datasets/owner/name"}, "says which kind of repository it is"),
        ({"STORAGE_URI": "https://host/y#sha256=12"}, "is no SHA-256 checksum"),
        ({"STORAGE_URI": "file://host/x"}, "names a machine"),
        ({"STORAGE_URI": "file:///no/such/folder"}, "is not there, or may not be read"),
        ({"STORAGE_URI": "s3:///x"}, "names no bucket"),
        ({"STORAGE_URI": "hf://a/b", "PARALLEL": "0"}, "PARALLEL is '0'"),
        ({"STORAGE_URI": "hf://a/b", "ENDPOINT": "ftp://x"}, "ENDPOINT is"),
        ({"STORAGE_URI": "hf://a/b", "ENDPOINT": "https://host:x"}, "ENDPOINT is"),
        ({"STORAGE_URI": "hf://a/b", "ENDPOINT": "https://[x"}, "ENDPOINT is"),
        ({"STORAGE_URI": "hf://a/b", "ENDPOINT": "https://me:secret@h"}, "user name or password"),
        ({"STORAGE_URI": "s3://b", "ENDPOINT": "http://:me:secret@h"}, "user name or password"),
        ({"STORAGE_URI": "s3://b", "ENDPOINT": "::::"}, "ENDPOINT is"),
        ({"STORAGE_URI": "s3://b", "ENDPOINT": "https://host name"}, "ENDPOINT is"),
        ({"STORAGE_URI": "https://h/x", "CA_BUNDLE": "/none"}, "CA_BUNDLE /none cannot be read"),
        ({"STORAGE_URI": "s3://b", "ACCESS_KEY_ID": "x"}, "only one of ACCESS_KEY_ID"),
        ({"STORAGE_URI": "s3://b", "ADDRESSING": "x"}, "ADDRESSING is 'x'"),
    ],
)
def test_settings_that_cannot_work_are_told_with_what_to_do(
    runner: Runner, given: dict[str, str], said: str
) -> None:
    uri = given.pop("STORAGE_URI")
    done = runner.here(uri, **given)
    assert done.status == 1
    assert said in done.err
    assert "\n\nhint: " in done.err
    assert "me:secret" not in done.err
