"""The API's description as OpenAPI 3.1, made from the endpoints and their types. Pure.

docs/openapi.json is this document; `tools/openapi.py` writes it and refuses what would break the
programs of others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from mpi_trainer.server import multipart
from mpi_trainer.server.endpoint import JSON, TEXT, YAML, Endpoint, Manifest
from mpi_trainer.server.endpoints import ENDPOINTS, STREAMS
from mpi_trainer.server.live.endpoint import EventStream
from mpi_trainer.server.live.values import Cut
from mpi_trainer.server.problems import MEDIA_TYPE
from mpi_trainer.server.values import Problem

Object = dict[str, Any]
VERSION: Final = "v1"
EVENT_STREAM: Final = "text/event-stream"
POSITION: Final = "lastEventId"
POSITION_HEADER: Final = "Last-Event-ID"
_REFS: Final = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w{1,32})\}")
_ABOUT: Final = {
    "namespace": "A namespace.",
    "name": "The object's name.",
    "index": "Which worker, counted from 0.",
}
_FORM: Final[Object] = {
    multipart.MEDIA_TYPE: {
        "schema": {
            "type": "object",
            "description": "A job with its code: `files`, or one `archive`.",
            "required": ["job"],
            "properties": {
                "job": {"type": "string", "description": "One MPIJob as JSON or YAML."},
                "files": {
                    "type": "array",
                    "description": "A file's name is its path within the folder.",
                    "items": {"type": "string", "contentMediaType": "application/octet-stream"},
                },
                "archive": {
                    "type": "string",
                    "description": "The folder as tar.gz or zip.",
                    "contentMediaType": "application/octet-stream",
                },
            },
        }
    }
}
_MATCHED: Final = ("delete", "suspend", "resume", "restart", "clone")
_DESCRIPTION: Final = (
    "MPI training jobs over HTTP, with the caller's own rights. Errors are RFC 9457 problems; "
    "their `detail` and `hint` are the words of `odh`."
)


@cache
def document() -> Mapping[str, Any]:
    """The same one for all."""
    types = _types()
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFS)
    known = dict(zip(types, schemas, strict=True))
    paths: Object = {}
    for endpoint in ENDPOINTS:
        operations = paths.setdefault(endpoint.path, {})
        operations[endpoint.method.lower()] = _operation(endpoint, known)
    for stream in STREAMS:
        paths.setdefault(stream.path, {})["get"] = _streamed(stream, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mpi-trainer", "version": VERSION, "description": _DESCRIPTION},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {name: _one_line(made) for name, made in sorted(components.items())},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _one_line(schema: Object) -> Object:
    """With the words of its docstring as they are read, not as they stand in the source."""
    if "description" not in schema:
        return schema
    return {**schema, "description": " ".join(schema["description"].split())}


def _types() -> list[Any]:
    given = [one.answer for one in ENDPOINTS if one.answer is not None]
    sent = [one.body for one in ENDPOINTS if isinstance(one.body, type)]
    told = [kind for one in STREAMS for kind in one.events.values()]
    return [*dict.fromkeys([Problem, *given, *sent, Cut, *told])]


def _streamed(stream: EventStream, known: Mapping[Any, Object]) -> Object:
    """An event is an object with its name and what it carries, as JSON in `data`."""
    position = {
        "description": "The id of the last event that you have: the stream goes on from there.",
        "schema": {"type": "string"},
    }
    told = {**stream.events, "cut": Cut, "error": Problem}
    events = [
        {
            "type": "object",
            "properties": {"event": {"const": name}, "id": {"type": "string"}, "data": known[kind]},
            "required": ["event", "data"],
        }
        for name, kind in told.items()
    ]
    return {
        "operationId": stream.name,
        "summary": stream.summary,
        "tags": [stream.kind or "general"],
        "parameters": [
            *_path_parameters(stream),
            *_query_parameters(stream),
            {"name": POSITION_HEADER, "in": "header", **position},
            {"name": POSITION, "in": "query", **position},
        ],
        "responses": {
            "200": {
                "description": "Events, for as long as somebody reads",
                "content": {EVENT_STREAM: {"schema": {"oneOf": events}}},
            },
            "default": _problem(known),
        },
    }


def _problem(known: Mapping[Any, Object]) -> Object:
    return {"description": "A problem", "content": {MEDIA_TYPE: {"schema": known[Problem]}}}


def _operation(endpoint: Endpoint, known: Mapping[Any, Object]) -> Object:
    made: Object = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.kind or "general"],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint, known),
    }
    if endpoint.name.startswith(_MATCHED):
        made["parameters"].append(
            {
                "name": "If-Match",
                "in": "header",
                "description": "The job's ETag: a job that has changed since is left as it is.",
                "schema": {"type": "string"},
            }
        )
    if endpoint.body is not None:
        content = _sent(endpoint.body, known) | (_FORM if endpoint.largest_form else {})
        made["requestBody"] = {"required": True, "content": content}
    return made


def _path_parameters(endpoint: Endpoint | EventStream) -> list[Object]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _ABOUT[name],
            "schema": {"type": "integer", "minimum": 0} if name == "index" else {"type": "string"},
        }
        for name in _PARAMETER.findall(endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint | EventStream) -> list[Object]:
    made = []
    for field in msgspec.structs.fields(endpoint.query):
        (schema,), components = msgspec.json.schema_components((field.type,))
        assert not components, f"{field.name}: a parameter is a plain value"
        if field.default not in (msgspec.NODEFAULT, None, "", ()):
            schema["default"] = field.default
        one: Object = {"name": field.encode_name, "in": "query", "schema": schema}
        if schema.get("type") == "array":
            one |= {"style": "form", "explode": False}
        made.append(one)
    return made


def _responses(endpoint: Endpoint, known: Mapping[Any, Object]) -> Object:
    content: Object = {}
    if endpoint.answer is not None:
        content[JSON] = {"schema": known[endpoint.answer]}
    if endpoint.text:
        content[TEXT] = {"schema": {"type": "string"}}
    made: Object = {}
    for status in (endpoint.status, *endpoint.also):
        one: Object = {"description": HTTPStatus(status).phrase}
        if content and status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            one["content"] = content
        made[str(status)] = one
    made["default"] = _problem(known)
    return made


def _sent(body: Any, known: Mapping[Any, Object]) -> Object:
    if isinstance(body, Manifest):
        what = f"One {body.kind}" if body.kind else "The objects of a job file"
        schema = {"type": "object", "description": f"{what}, as kubectl takes it."}
        return {media_type: {"schema": schema} for media_type in (JSON, YAML[0])}
    return {JSON: {"schema": known[body]}}
