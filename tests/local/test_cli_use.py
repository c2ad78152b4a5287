"""What people asked of `odh` after using it for real: named filters, short forms, questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.local.cli import Cli, cli


@pytest.fixture(scope="module")
def odh() -> Iterator[Cli]:
    with cli() as program:
        yield program


@pytest.fixture(scope="module")
def repeated(odh: Cli) -> str:
    """A job that has failed three times."""
    words = ("-w", "1", "--mpi", "mpich", "--retries", "2", "--as-is", "--wait")
    script = 'n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; echo "try $n"; exit 7'
    odh("mpijob", "create", "repeated", *words, "--", "sh", "-c", script, code=1)
    return "repeated"


def test_logs_of_an_attempt_that_was_not_made_are_an_error(odh: Cli, repeated: str) -> None:
    assert "try 2" in odh("mpijob", "logs", repeated, "--attempt", "3").stdout
    refused = odh("mpijob", "logs", repeated, "--attempt", "9", code=1)
    assert refused.stdout == ""
    assert refused.stderr == f"error: job {repeated} has no attempt 9, but attempts 1 to 3\n"


def test_logs_of_a_rank_that_is_not_there_are_an_error(odh: Cli) -> None:
    odh("mpijob", "create", "two", "-w", "2", "--mpi", "mpich", "--wait", "--", "echo", "hello")
    refused = odh("mpijob", "logs", "two", "--rank", "9", code=1)
    assert refused.stderr == "error: job two has no rank 9, but ranks 0 to 1\n"
