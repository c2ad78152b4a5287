"""The dashboard's files: what a browser gets, under which policy, and what it never gets."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.server.app import HEADERS, Settings
from mpi_trainer.server.callers import Loopback
from tests.rest import Rest, served

INDEX = "<!doctype html><title>built</title>"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """As the build leaves it, in a folder with something beside it that is nobody's business."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "index-AB12.js").write_text("let built;")
    (folder / "assets" / "index-AB12.js.gz").write_bytes(gzip.compress(b"let built;"))
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def server(pages: Path) -> Iterator[Rest]:
    with served(Loopback(LocalBackend(), "odh-session"), Settings(pages=pages)) as port:
        yield Rest(port)


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/default/mpijobs/my.job/logs", "/apis"])
def test_every_page_is_the_same_file_and_is_asked_for_again(server: Rest, path: str) -> None:
    reply = server.ask("GET", path)
    assert (reply.status, reply.body.decode()) == (200, INDEX)
    assert reply.headers["Cache-Control"] == "no-cache"


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(server: Rest) -> None:
    headers = server.ask("GET", "/jobs").headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    rest = {"Cache-Control", "Content-Security-Policy"}
    assert {name: headers.get(name) for name in HEADERS.keys() - rest} == {
        name: value for name, value in HEADERS.items() if name not in rest
    }


def test_what_has_its_content_in_its_name_is_kept_and_sent_compressed(server: Rest) -> None:
    path = "/assets/index-AB12.js"
    plain = server.ask("GET", path)
    assert plain.body == b"let built;" and "immutable" in plain.headers["Cache-Control"]
    packed = server.ask("GET", path, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == b"let built;"
    assert packed.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" not in server.ask("GET", "/icon.svg").headers["Cache-Control"]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/index-OLD.js",
        "/assets/",
        "/assets/../../secret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/..%5csecret.txt",
        "/assets//etc/passwd",
        "/secret.txt",
    ],
)
def test_a_file_that_is_not_there_is_a_problem_and_no_other_file(server: Rest, path: str) -> None:
    reply = server.ask("GET", path)
    assert b"secret" not in reply.body.replace(b"secret.txt", b"") and b"root:" not in reply.body
    assert reply.status == 404 or reply.body.decode() == INDEX
    if path.startswith("/assets/index"):
        assert reply.data["hint"]


def test_the_api_is_not_shadowed_by_pages(server: Rest) -> None:
    assert server.ask("GET", "/healthz").body == b"ok\n"
    assert server.ask("GET", "/api/none").status == 404
    assert server.ask("GET", "/api").status == 404
    assert server.ask("POST", "/jobs", b"{}").status == 405


def test_a_checkout_without_the_build_says_how_to_build_it(tmp_path: Path) -> None:
    with served(Loopback(LocalBackend(), "c"), Settings(pages=tmp_path / "none")) as port:
        reply = Rest(port).ask("GET", "/jobs")
        assert "make dashboard" in reply.body.decode()
        assert reply.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
