"""A call by gRPC, as the endpoints of REST want it.

A message's fields are read as a request's parameters are: by the same types, with the same words
for what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any, Final

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from mpi_trainer.api.errors import INVALID, REQUIRED, FieldError
from mpi_trainer.server.callers import Caller, Callers
from mpi_trainer.server.calls import Asks, call_of, live_call_of, query_of
from mpi_trainer.server.endpoint import JSON, LARGEST_BODY, YAML, Call, Endpoint
from mpi_trainer.server.live.endpoint import LiveCall
from mpi_trainer.server.live.hub import Hub
from mpi_trainer.server.problems import bad_request, refused
from mpi_trainer.server.rpc.messages import state_words

Metadata = Iterable[tuple[str, str | bytes]]
_APART: Final = frozenset({"name", "etag", "manifest_json", "manifest_yaml"})
"""fields that are no parameters, of messages that are about one job"""


class RpcAsked:
    def __init__(self, request: Any, metadata: Metadata) -> None:
        self._request = request
        self._metadata = metadata
        self.namespace = str(self._request.namespace)
        self._lists = "label_selector" in request.DESCRIPTOR.fields_by_name
        self.job: str = "" if self._lists else getattr(request, "name", "")

    def caller(self, callers: Callers) -> Caller:
        """By the one token that was sent; of two, nobody knows which one is meant."""
        logins = [value for name, value in self._metadata if name == "authorization"]
        found = logins[0] if len(logins) == 1 else ""
        return callers.caller({"Authorization": found if isinstance(found, str) else ""}, {})

    async def call(self, endpoint: Endpoint, caller: Caller) -> Call:
        path, query = self._read(endpoint)
        etag = getattr(self._request, "etag", "")
        body, media_type = self._manifest()
        return msgspec.structs.replace(
            call_of(endpoint, caller, query=query, path=path),
            body=body,
            media_type=media_type,
            if_match=f'"{etag}"' if etag else "",
        )

    async def live_call(self, stream: Asks, caller: Caller, hub: Hub) -> LiveCall:
        path, query = self._read(stream)
        return live_call_of(stream, caller, hub, query=query, path=path, position="")

    def _read(self, asks: Asks) -> tuple[dict[str, str], msgspec.Struct]:
        path = {"name": self.job} if "name" in self._parts() else {}
        return path, query_of(asks, path, [*self._parameters()])

    def _parts(self) -> frozenset[str]:
        """Fields of the request that are no parameters."""
        fields = self._request.DESCRIPTOR.fields_by_name
        return frozenset() if self._lists else _APART & {*fields}

    def _parameters(self) -> Iterable[tuple[str, str]]:
        for field, value in self._request.ListFields():
            if field.name in self._parts():
                continue
            name = "continue" if field.name == "continue_token" else field.json_name
            yield name, state_words(value) if field.name == "state" else _text(name, value)

    def _manifest(self) -> tuple[bytes, str]:
        if "manifest_json" not in self._parts():
            return b"", JSON
        which = self._request.WhichOneof("manifest")
        if which is None:
            remedy = "give manifest_json or manifest_yaml"
            raise bad_request([FieldError(("manifest",), REQUIRED, remedy=remedy)])
        body = getattr(self._request, which).encode()
        if len(body) > LARGEST_BODY:
            raise too_large()
        return body, JSON if which == "manifest_json" else YAML[0]


def too_large() -> Exception:
    return refused(
        413,
        "too-large",
        f"the manifest is larger than {LARGEST_BODY // 2**20} MiB, which no job is",
        "Send a job, and put data where the job can fetch it.",
    )


def _text(name: str, value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, Timestamp):
        return str(value)
    try:
        return value.ToDatetime(UTC).isoformat()
    except (OverflowError, ValueError):
        rule = "must be a time between the years 1 and 9999"
        raise bad_request([FieldError((name,), INVALID, rule=rule)]) from None
