"""A path of the API as a value: what it takes, what it does, what it answers.

An endpoint's `run` is the core: it gets a `Call`, which holds all that was asked, and returns an
`Answer`. It knows nothing of connections, tokens or limits: `calls.py` has those, and the shells
(`app.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from mpi_trainer.sdk.backends.backend import Backend, Key
from mpi_trainer.server.job_reads import CallerReads, JobReads
from mpi_trainer.server.prometheus import Prometheus

CRUD_SECONDS: Final = 30.0
LONG_SECONDS: Final = 600.0
LARGEST_BODY: Final = 1024 * 1024
"""bytes; a job file is smaller"""

JSON: Final = "application/json"
YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
TEXT: Final = "text/plain"

Headers = tuple[tuple[str, str], ...]


class NoQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Takes no parameters."""


class Call(msgspec.Struct, frozen=True):
    """What was asked. `backend` acts with the caller's rights and sees jobs of `kind` alone, where
    that is given; `text` says that the caller would rather have text than JSON."""

    backend: Backend
    kind: str = ""
    path: Mapping[str, str] = {}
    query: Any = NoQuery()
    body: bytes = b""
    media_type: str = JSON
    content_type: str = ""
    """as it was sent, with its parameters"""
    if_match: str = ""
    if_none_match: str = ""
    text: bool = False
    now: datetime = datetime.min
    prometheus: Prometheus | None = None
    """as the caller asks it, where the server has one"""
    grafana: str = ""
    reads: CallerReads = msgspec.field(default_factory=lambda: CallerReads(JobReads(), "", ""))
    """of lists of jobs, by this caller alone"""

    @property
    def namespace(self) -> str:
        """That of the path; of a short path its parameter, else where jobs go that name none."""
        found: str = self.path.get("namespace") or self.given_namespace or self.backend.namespace
        return found

    @property
    def given_namespace(self) -> str:
        return getattr(self.query, "namespace", "") or ""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.path["name"])


class Answer(msgspec.Struct, frozen=True):
    """`value` is written as JSON, a text as it is; None is an empty body."""

    value: Any = None
    status: int = 200
    headers: Headers = ()


class Endpoint(msgspec.Struct, frozen=True):
    """`answer` is the type of what comes back, `status` that of success. `body` is what is sent:
    a manifest, a whole job file, or a value of ours."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    summary: str
    run: Callable[[Call], Awaitable[Answer]]
    answer: Any = None
    status: int = 200
    also: tuple[int, ...] = ()
    """other answers that are no problems"""
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    kind: str = ""
    seconds: float = CRUD_SECONDS
    text: bool = False
    """whether it can also answer with text"""
    largest_form: int = 0
    """bytes of a form that it takes in place of the body"""
    heavy: bool = False
    """whether one caller may have only one such call at a time"""

    @property
    def changes(self) -> bool:
        """Whether a call is written to the audit log and needs protection against forgery."""
        if self.method == "GET":
            return False
        return self.heavy or not self.path.startswith(PLAN)

    @property
    def awaited(self) -> bool:
        """Whether it ends when nobody waits for its answer."""
        return self.heavy or (self.method == "GET" and self.seconds > CRUD_SECONDS)


class Manifest(msgspec.Struct, frozen=True):
    """A body that holds one object of this kind, or any objects of a job file."""

    kind: str = ""


PLAN: Final = "/api/v1/namespaces/{namespace}/plan/"
