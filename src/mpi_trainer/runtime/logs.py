"""Logs as one line of JSON each, for machines first.

Every line has `ts level logger msg`, and `controller key reconcile_id` where a key is worked on.
Guarantee: bearer tokens, signed tokens and private keys are cut out of messages, fields and
tracebacks alike. That is a net under careful code, not a licence to log secrets.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from mpi_trainer.api import bounds, secret_text

_BOUND: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("log_fields", default={})  # noqa: B039

_SECRET_FIELDS = re.compile(r"(?i)token|password|secret_?data|private|authorization|cookie")
_LEVELS = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warn", "INFO": "info"}
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def redacted(text: str) -> str:
    return secret_text.without_tokens(secret_text.without_keys(text))


@contextlib.contextmanager
def bound(**fields: Any) -> Iterator[None]:
    """Every line logged inside carries these fields."""
    token = _BOUND.set({**_BOUND.get(), **fields})
    try:
        yield
    finally:
        _BOUND.reset(token)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": _LEVELS.get(record.levelname, "debug"),
            "logger": record.name,
            "msg": _clean(record.getMessage()),
        }
        extra = {k: v for k, v in vars(record).items() if k not in _STANDARD}
        for name, value in {**_BOUND.get(), **extra}.items():
            line.setdefault(name, "[redacted]" if _SECRET_FIELDS.search(name) else _plain(value))
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _clean("".join(traceback.format_exception(record.exc_info[1])))
        return msgspec.json.encode(line).decode()


def set_up(level: str = "INFO", stream: TextIO | None = None) -> None:
    """For the whole process. Libraries speak up only from warnings on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("mpi_trainer").setLevel(level.upper())


def _clean(text: str) -> str:
    return redacted(text if len(text) <= bounds.LOG_LINE else text[: bounds.LOG_LINE] + "…")


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | None) else _clean(str(value))
