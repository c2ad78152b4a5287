"""A few requests to the API server, with the administrator's certificate.

Only what starting a cluster needs: is it ready, read, delete, and server-side apply. Anything
larger goes through the cluster's own kubectl.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable
from typing import Any

from tools.cluster.addresses import Port
from tools.cluster.errors import ClusterError
from tools.cluster.spec import Spec


class Client:
    """Requests to one cluster's API server. Every request has a time limit."""

    def __init__(self, spec: Spec) -> None:
        pki = spec.state / "pki"
        self._host, self._port = spec.api_host, spec.addresses.port(Port.API)
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))

    def ready(self) -> bool:
        """Whether the API server says that it is ready."""
        try:
            return self._request("GET", "/readyz")[1] == b"ok"
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str) -> dict[str, Any]:
        """The object at `path`; an empty one if it is not there."""
        status, body = self._request("GET", path)
        if status == http.HTTPStatus.NOT_FOUND:
            return {}
        return self._checked(f"GET {path}", status, body)

    def apply(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply of one object."""
        query = f"{path}?fieldManager=mpi-trainer-cluster&force=true"
        kind = "application/apply-patch+yaml"
        status, body = self._request("PATCH", query, value, kind)
        return self._checked(f"PATCH {path}", status, body)

    def delete(self, path: str) -> None:
        """Delete one object, which must be there."""
        status, body = self._request("DELETE", path)
        self._checked(f"DELETE {path}", status, body)

    def _request(
        self, method: str, path: str, value: Any = None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=20, context=self._tls
        )
        try:
            body = json.dumps(value).encode() if value is not None else None
            connection.request(method, path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    @staticmethod
    def _checked(what: str, status: int, body: bytes) -> dict[str, Any]:
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ClusterError(f"{what}: {status} {body[:500].decode(errors='replace')}")
        decoded: dict[str, Any] = json.loads(body)
        return decoded


def wait_until(what: str, done: Callable[[], bool], seconds: float, pause: float = 0.05) -> None:
    """Ask again and again until it is so, or say that it never was."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not after {seconds:.0f} s")
        time.sleep(pause)
