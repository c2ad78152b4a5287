"""One line of JSON for each thing that is logged, and no secrets in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from mpi_trainer.runtime import logs

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"


@pytest.fixture
def said() -> Callable[[Callable[[logging.Logger], None]], dict[str, Any]]:
    def say(speak: Callable[[logging.Logger], None]) -> dict[str, Any]:
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logs.JsonFormatter())
        logger = logging.Logger("mpi_trainer.test")
        logger.addHandler(handler)
        speak(logger)
        text = stream.getvalue()
        assert text.count("\n") == 1, "one line"
        found: dict[str, Any] = json.loads(text)
        return found

    return say


Said = Callable[[Callable[[logging.Logger], None]], dict[str, Any]]


def test_a_line_has_its_time_level_and_fields(said: Said) -> None:
    line = said(lambda log: log.warning("pod %s\nis gone", "a", extra={"attempt": 2}))
    assert line["ts"].endswith("+00:00")
    assert (line["level"], line["logger"]) == ("warn", "mpi_trainer.test")
    assert (line["msg"], line["attempt"]) == ("pod a\nis gone", 2)


def test_lines_carry_the_key_that_is_worked_on(said: Said) -> None:
    def speak(log: logging.Logger) -> None:
        with logs.bound(controller="mpijob", key=("n", "job")):
            with logs.bound(reconcile_id="1"):
                pass
            log.info("x")

    line = said(speak)
    assert line["controller"] == "mpijob"
    assert "reconcile_id" not in line


@pytest.mark.parametrize("secret", [KEY, f"Authorization: Bearer {JWT}", f"bearer {'x' * 20}", JWT])
def test_secrets_are_cut_out_of_messages_fields_and_tracebacks(said: Said, secret: str) -> None:
    def speak(log: logging.Logger) -> None:
        try:
            raise RuntimeError(f"bad: {secret} end")
        except RuntimeError:
            log.exception("failed: %s", secret, extra={"body": secret, "token": "plain"})

    line = said(speak)
    text = json.dumps(line)
    for part in ("b3BlbnNz", "eyJhbGci", "xxxxx", "plain"):
        assert part not in text
    assert "[redacted]" in line["msg"]
    assert "RuntimeError" in line["error"]


def test_a_key_that_is_cut_off_is_cut_out_too(said: Said) -> None:
    line = said(lambda log: log.info("%s", KEY[:50]))
    assert line["msg"] == "[redacted]"


def test_a_very_long_message_is_shortened(said: Said) -> None:
    assert len(said(lambda log: log.info("x" * 100_000))["msg"]) < 20_000


def test_the_whole_process_logs_json_and_libraries_only_warn() -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.getLogger("mpi_trainer").level)
    stream = io.StringIO()
    try:
        logs.set_up("info", stream)
        logging.getLogger("aiohttp").info("chatter")
        logging.getLogger("mpi_trainer.x").debug("detail")
        logging.getLogger("mpi_trainer.x").info("state")
        assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["state"]
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        logging.getLogger("mpi_trainer").setLevel(before[2])
