"""What the pages show of programs in other languages is what lies in examples/clients, and the
committed Go code is of this API."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import goclient, protos

ROOT = Path(__file__).parents[3]
CLIENTS = ROOT / "examples/clients"


def test_the_go_code_is_of_this_api() -> None:
    """SC-004; `python -m tools.goclient` makes it."""
    ours = goclient.described()
    assert protos.breaking(ours, protos.committed()) == []
    assert protos.breaking(protos.committed(), ours) == []


@pytest.mark.parametrize(
    ("page", "kind", "program"),
    [
        ("server.md", "bash", "curl/hello.sh"),
        ("grpc.md", "bash", "grpcurl/hello.sh"),
        ("grpc.md", "go", "go/main.go"),
    ],
)
def test_a_page_shows_the_program_as_it_is(page: str, kind: str, program: str) -> None:
    """DOC-1; tests/local/test_client_examples.py runs the programs."""
    text = (CLIENTS / program).read_text()
    assert f"```{kind}\n{text}```" in (ROOT / "docs" / page).read_text()
