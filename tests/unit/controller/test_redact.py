"""Log tails without secrets (OBS-4)."""

from __future__ import annotations

import pytest

from mpi_trainer.controller import redact


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("password=hunter2 rejected", "hunter2"),
        ('{"api_key": "s3cr3t-value"}', "s3cr3t-value"),
        ("Authorization: Bearer abcdefgh.ijkl", "abcdefgh.ijkl"),
        ("GET https://me:pw12@host/x", "pw12"),
        ("key AKIAABCDEFGHIJKLMNOP used", "AKIAABCDEFGHIJKLMNOP"),
        ("token eyJhbGciOi.eyJzdWIiOi.c2ln", "eyJhbGciOi"),
        ("hf_abcdefghijkl is not valid", "hf_abcdefghijkl"),
        ("-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----", "MHcC"),
        ("AWS_SECRET_ACCESS_KEY: 'abc/def'", "abc/def"),
        ("+ curl --user me --password hunter2 host", "hunter2"),
        ("tokenIs=hunter2", "hunter2"),
        ("TOKENIZER_AUTH_TOKEN=hunter2", "hunter2"),
    ],
)
def test_a_secret_is_hidden_and_the_rest_is_not(line: str, secret: str) -> None:
    shown = redact.tail(f"before\n{line}\nRuntimeError: disk full")
    assert secret not in shown
    assert shown.startswith("before | ")
    assert shown.endswith("RuntimeError: disk full")


@pytest.mark.parametrize(
    "line", ["tokenizer=bpe.json not found", "no file for --tokenizer bpe.json"]
)
def test_a_tokenizer_is_no_secret(line: str) -> None:
    assert redact.tail(line) == line


def test_the_values_of_the_jobs_own_variables_are_hidden() -> None:
    variables = [("WANDB_API_KEY", "0123456789abcdef"), ("EPOCHS", "100")]
    shown = redact.tail("got 0123456789abcdef for 100 epochs", variables)
    assert shown == "got [redacted] for 100 epochs"


def test_only_the_end_is_kept_and_it_is_printable() -> None:
    log = "".join(f"line {n} \x1b[31mred\x1b[0m \x07{'x' * 100}\n" for n in range(50))
    shown = redact.tail(log)
    assert len(shown) <= redact.LONGEST
    assert "\x1b" not in shown
    assert "line 49" in shown
    assert "line 40" not in shown
