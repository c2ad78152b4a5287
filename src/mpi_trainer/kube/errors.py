"""What can go wrong between us and an API server.

    Exception
    └── KubeError
        ├── ConfigError         no usable configuration; nothing was sent
        ├── PastDeadline        a write was not sent because our time to write was over
        ├── Unreachable         no answer: connection, TLS, time-out; `sent`: it may have run
        ├── Garbled             an answer that is not what was asked for
        └── ApiError            the server's answer, with its Status kept
            ├── Unauthorized    401
            ├── Forbidden       403
            ├── NotFound        404
            ├── AlreadyExists   409, the name is taken
            ├── Conflict        409, the object is not as the request assumed
            ├── Gone            410, the resourceVersion or list token is too old
            ├── Invalid         422, `details` names the fields
            ├── TooManyRequests 429, not processed
            └── ServerFault     5xx

Danger: after `Unreachable` with `sent`, and after `ServerFault`, a write may have happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.requests import Request

_SHOWN = 300


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The API server's own account of an error."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


class KubeError(Exception):
    """Anything that this package raises on purpose."""


class ConfigError(KubeError):
    """The configuration cannot be used; the text says where and what to do."""


class PastDeadline(KubeError):
    """A write that was not sent."""

    def __init__(self, request: Request) -> None:
        self.method = request.method
        self.path = request.path
        super().__init__(f"{self.method} {self.path}: not sent: the time to write is over")


class Unreachable(KubeError):
    """No answer. `what` is connect, tls, time-out or broken; after the last two the server may have
    seen the request."""

    def __init__(self, request: Request, what: str, why: str) -> None:
        self.method = request.method
        self.path = request.path
        self.what = what
        self.sent = what in ("time-out", "broken")
        super().__init__(f"{self.method} {self.path}: {why}")


class Garbled(KubeError):
    """An answer that does not decode to what was asked for."""

    def __init__(self, request: Request, why: str) -> None:
        self.method = request.method
        self.path = request.path
        super().__init__(f"{self.method} {self.path}: the answer cannot be read: {why}")


class ApiError(KubeError):
    """The server said no."""

    remedy: ClassVar[str] = ""

    def __init__(self, request: Request, status: Status, retry_after: float | None = None) -> None:
        self.method = request.method
        self.path = request.path
        self.code = status.code
        self.reason = status.reason
        self.message = status.message
        self.details: Mapping[str, Any] = status.details or {}
        self.retry_after = retry_after
        what = f"{status.code} {status.reason}".strip()
        text = f"{self.method} {self.path}: {what}: {status.message or 'the server says no more'}"
        super().__init__(f"{text}; {self.remedy}" if self.remedy else text)

    def has_cause(self, reason: str) -> bool:
        """Whether the server names this cause, such as `NamespaceTerminating`."""
        causes = self.details.get("causes") or ()
        return any(cause.get("reason") == reason for cause in causes)


class Unauthorized(ApiError):
    remedy = "the credentials are missing, wrong or expired: log in again"


class Forbidden(ApiError):
    remedy = "ask for this right, or use another account"


class NotFound(ApiError):
    pass


class AlreadyExists(ApiError):
    remedy = "delete it or take another name"


class Conflict(ApiError):
    remedy = "read it again and repeat the change"


class Gone(ApiError):
    remedy = "list again from the start"


class Invalid(ApiError):
    pass


class TooManyRequests(ApiError):
    remedy = "the server is busy: try again later"


class ServerFault(ApiError):
    remedy = "the server is in trouble: try again later"


_BY_CODE: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_status(request: Request, status: Status, retry_after: float | None = None) -> ApiError:
    """The error that stands for a Status."""
    if status.reason == "AlreadyExists":
        return AlreadyExists(request, status, retry_after)
    kind = ServerFault if status.code >= 500 else _BY_CODE.get(status.code, ApiError)
    return kind(request, status, retry_after)


def from_answer(request: Request, code: int, body: bytes, retry_after: str = "") -> ApiError:
    """The error that stands for an HTTP answer, be it a Status or some proxy's page."""
    try:
        status = typed.decode(body, Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = " ".join(body[: 4 * _SHOWN].decode(errors="replace").split())
        status = Status(message=text[:_SHOWN])
    if status.code != code:
        # The line of HTTP is what proxies and servers agree on.
        status = msgspec.structs.replace(status, code=code)
    return from_status(request, status, seconds(retry_after))


def seconds(retry_after: str) -> float | None:
    """How long the server asks to wait; None for dates and nonsense."""
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
