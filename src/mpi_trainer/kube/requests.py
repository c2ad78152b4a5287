"""What is asked of the API server, as values: built here, sent elsewhere, compared in tests.

A `Request` holds everything but the server's address and the credentials. `safe` means that
sending it twice does no harm; only then is it repeated when nobody knows whether the first one
arrived. Danger: a `replace` from a partial value drops every field that the value does not know;
write by `patch` or `apply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlencode

import msgspec

from mpi_trainer.kube.resources import PODS, Resource

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"
METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
PatchKind = Literal["merge", "json", "strategic"]
_PATCHES: Final[Mapping[PatchKind, str]] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
Object = Mapping[str, Any] | msgspec.Struct
Query = tuple[tuple[str, str], ...]


Propagation = Literal["Background", "Foreground", "Orphan"]


class Request(msgspec.Struct, frozen=True):
    """One request. `timeout` is for each try as a whole; in a stream, for each silence. `gather`:
    for so many seconds a line of a stream may wait for others, where many come. `accept` is the
    form of the answer, JSON where it says nothing."""

    method: str
    path: str
    query: Query = ()
    body: bytes = b""
    content_type: str = ""
    timeout: float = 30.0
    safe: bool = False
    tries: int = 5
    route: str = ""
    gather: float = 0.0
    accept: str = ""

    @property
    def target(self) -> str:
        """Path and query, encoded for the request line."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def headers(self, authorization: str) -> dict[str, str]:
        """What differs from one request to the next."""
        given = {
            "Content-Type": self.content_type,
            "Accept": self.accept,
            "Authorization": authorization,
        }
        return {name: value for name, value in given.items() if value}

    @property
    def writes(self) -> bool:
        """Whether it may change anything on the server."""
        return self.method not in ("GET", "HEAD")

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again though the first one may have arrived."""
        return self.safe or not self.writes

    def __repr__(self) -> str:
        # The body may hold a Secret.
        return f"Request({self.method} {self.target}, {len(self.body)} bytes)"


def brief(request: Request) -> Request:
    """The same, answered with the object's metadata alone: less work for both sides, and no secret
    on its way. A server that does not know how answers with all of it."""
    return msgspec.structs.replace(request, accept=METADATA)


def brief_list(request: Request) -> Request:
    """The same for a page of a collection."""
    return msgspec.structs.replace(request, accept=METADATA_LIST)


def get(resource: Resource, namespace: str, name: str, sub: str = "") -> Request:
    """Read one object."""
    target = (namespace, _named(resource, name), sub)
    return Request("GET", resource.path(*target), route=resource.route(*target))


def list_page(  # noqa: PLR0913 - the list options of the API, each optional
    resource: Resource,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    limit: int = 500,
    continue_: str = "",
    resource_version: str = "",
) -> Request:
    """Read one page of a collection; a page after the first takes its version from the token."""
    query = _present(
        labelSelector=labels,
        fieldSelector=fields,
        limit=str(limit) if limit else "",
        resourceVersion="" if continue_ else resource_version,
    )
    if continue_:
        query = (*query, ("continue", continue_))
    return Request(
        "GET", resource.path(namespace), query, timeout=60.0, route=resource.route(namespace)
    )


def create(resource: Resource, namespace: str, obj: Object, dry_run: bool = False) -> Request:
    """Make a new object."""
    return Request(
        "POST",
        resource.path(namespace),
        _dry(dry_run),
        encode(obj),
        JSON,
        route=resource.route(namespace),
    )


def submit(resource: Resource, namespace: str, obj: Object, dry_run: bool = False) -> Request:
    """Make an object that a person wrote: a field that the server does not know is refused."""
    request = create(resource, namespace, obj, dry_run)
    return msgspec.structs.replace(request, query=(*request.query, ("fieldValidation", "Strict")))


def replace(
    resource: Resource, namespace: str, name: str, obj: Object, sub: str = "", dry_run: bool = False
) -> Request:
    """Put a whole object (or its `sub`) in place of the one whose resourceVersion it carries."""
    target = (namespace, _named(resource, name), sub)
    return Request(
        "PUT",
        resource.path(*target),
        _dry(dry_run),
        encode(obj),
        JSON,
        route=resource.route(*target),
    )


def delete(  # noqa: PLR0913 - the delete options of the API, each optional
    resource: Resource,
    namespace: str,
    name: str,
    uid: str = "",
    resource_version: str = "",
    grace: int | None = None,
    propagation: Propagation = "Background",
) -> Request:
    """Delete one object; with `uid`, that very object and never a later one of its name."""
    preconditions = dict(_present(uid=uid, resourceVersion=resource_version))
    options: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if preconditions:
        options["preconditions"] = preconditions
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    target = (namespace, _named(resource, name))
    return Request(
        "DELETE",
        resource.path(*target),
        body=encode(options),
        content_type=JSON,
        route=resource.route(*target),
    )


def patch(
    resource: Resource,
    namespace: str,
    name: str,
    body: Object | Sequence[Object],
    kind: PatchKind,
    sub: str = "",
) -> Request:
    """Change an object. Custom resources know no strategic patches; JSON patches are lists."""
    target = (namespace, _named(resource, name), sub)
    return Request(
        "PATCH",
        resource.path(*target),
        body=encode(body),
        content_type=_PATCHES[kind],
        route=resource.route(*target),
    )


def apply(  # noqa: PLR0913 - the apply options of the API
    resource: Resource,
    namespace: str,
    name: str,
    obj: Object,
    manager: str,
    force: bool = True,
    sub: str = "",
) -> Request:
    """Server-side apply: these fields are as said here and `manager`'s; others are not touched."""
    query = (("fieldManager", manager), ("force", "true" if force else "false"))
    target = (namespace, _named(resource, name), sub)
    return Request(
        "PATCH", resource.path(*target), query, encode(obj), APPLY, route=resource.route(*target)
    )


def watch(  # noqa: PLR0913 - the watch options of the API, each optional
    resource: Resource,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    resource_version: str = "",
    seconds: int = 300,
    bookmarks: bool = True,
    gather: float = 0.0,
) -> Request:
    """Changes after `resource_version`; the server ends it after `seconds`.

    With bookmarks it speaks at least once a minute, so a longer silence means a dead connection.
    """
    query = (
        ("watch", "true"),
        *_present(labelSelector=labels, fieldSelector=fields, resourceVersion=resource_version),
        ("timeoutSeconds", str(seconds)),
        *((("allowWatchBookmarks", "true"),) if bookmarks else ()),
    )
    silence = 75.0 if bookmarks else seconds + 15.0
    return Request(
        "GET",
        resource.path(namespace),
        query,
        timeout=silence,
        route=resource.route(namespace),
        gather=gather,
    )


class LogOptions(msgspec.Struct, frozen=True):
    """Which part of a container's log. `since` is RFC 3339."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: str = ""
    limit_bytes: int | None = None


_WHOLE_LOG: Final = LogOptions()


def logs(namespace: str, pod: str, options: LogOptions = _WHOLE_LOG) -> Request:
    """A container's log. A job may be silent for hours, so following has no time-out of its own:
    dead connections are found by the transport's keep-alive."""
    target = (namespace, _named(PODS, pod), "log")
    query = _present(
        container=options.container,
        follow="true" if options.follow else "",
        previous="true" if options.previous else "",
        timestamps="true" if options.timestamps else "",
        tailLines="" if options.tail is None else str(options.tail),
        sinceTime=options.since,
        limitBytes="" if options.limit_bytes is None else str(options.limit_bytes),
    )
    timeout = 0.0 if options.follow else 60.0
    return Request("GET", PODS.path(*target), query, timeout=timeout, route=PODS.route(*target))


def execute(
    namespace: str,
    pod: str,
    command: Sequence[str],
    container: str = "",
    stdin: bool = False,
    tty: bool = False,
) -> Request:
    """A command in a running container, for a websocket. Arguments are passed on one by one."""
    target = (namespace, _named(PODS, pod), "exec")
    query = (
        *_present(container=container),
        *(("command", word) for word in command),
        ("stdin", "true" if stdin else "false"),
        ("stdout", "true"),
        ("stderr", "false" if tty else "true"),
        ("tty", "true" if tty else "false"),
    )
    return Request("GET", PODS.path(*target), query, tries=1, route=PODS.route(*target))


def encode(obj: Object | Sequence[Object]) -> bytes:
    """An object's JSON."""
    return msgspec.json.encode(obj)


def _named(resource: Resource, name: str) -> str:
    """Without its name a request for one object would become one for the collection."""
    if not name:
        raise ValueError(f"{resource.kind}: the name is missing")
    return name


def _present(**fields: str) -> Query:
    return tuple((key, value) for key, value in fields.items() if value)


def _dry(dry_run: bool) -> Query:
    return (("dryRun", "All"),) if dry_run else ()


class Caller(Protocol):
    """The API client as far as single requests go; `kube.client.Client` is one."""

    async def call(self, request: Request, kind: Any = ...) -> Any:
        """The decoded answer; raises `KubeError`."""


class Fetcher(Caller, Protocol):
    """A `Caller` that also gives answers as they came."""

    async def fetch(self, request: Request) -> bytes:
        """The answer's body; raises `KubeError`."""

    def decode(self, request: Request, body: bytes, kind: Any) -> Any:
        """An answer's body as a value."""
