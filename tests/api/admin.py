"""The administrator's requests in tests, quick enough to play a kubelet with."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
from typing import Any

from tools.cluster.addresses import Port
from tools.cluster.spec import Spec

Object = dict[str, Any]
JOBS = "apis/kubeflow.org/v2beta1"
MERGE = "application/merge-patch+json"


class Refusal(AssertionError):
    """The API server said no."""

    def __init__(self, what: str, code: int, body: bytes) -> None:
        self.code = code
        super().__init__(f"{what}: {code} {body[:600].decode(errors='replace')}")


class Admin:
    """One namespace, with the administrator's certificate. May be used by several threads.

    `user`: in whose name, where it is not the administrator's own.
    """

    def __init__(self, spec: Spec, namespace: str, user: str = "") -> None:
        self._headers = {"Impersonate-User": user} if user else {}
        self.spec = spec
        self.namespace = namespace
        pki = spec.state / "pki"
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        self._local = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        for connection in self._opened:
            connection.close()

    # --- objects -----------------------------------------------------------------------------

    def create(self, path: str, obj: Object) -> Object:
        return self.call("POST", self._in(path), obj)

    def get(self, path: str) -> Object | None:
        try:
            return self.call("GET", self._in(path))
        except Refusal as refusal:
            if refusal.code == 404:
                return None
            raise

    def every(self, path: str) -> list[Object]:
        found: list[Object] = self.call("GET", self._in(path))["items"]
        return found

    def patch(self, path: str, change: Object) -> Object:
        return self.call("PATCH", self._in(path), change, MERGE)

    def delete(self, path: str, grace: int | None = None, propagation: str = "Background") -> None:
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        try:
            self.call("DELETE", self._in(path), {"propagationPolicy": propagation, **options})
        except Refusal as refusal:
            if refusal.code != 404:
                raise

    # --- jobs --------------------------------------------------------------------------------

    def job(self, name: str = "pi") -> Object:
        found = self.get(f"{JOBS}/mpijobs/{name}")
        assert found is not None, f"job {name} is gone"
        return found

    def conditions(self, name: str = "pi") -> dict[str, Object]:
        return {c["type"]: c for c in self.job(name).get("status", {}).get("conditions", [])}

    def holds(self, kind: str, name: str = "pi") -> bool:
        return self.conditions(name).get(kind, {}).get("status") == "True"

    def change(self, name: str = "pi", **run_policy: Any) -> None:
        self.patch(f"{JOBS}/mpijobs/{name}", {"spec": {"runPolicy": run_policy}})

    def pods(self, role: str = "") -> list[Object]:
        label = "training.kubeflow.org/job-role"
        every = self.every("api/v1/pods")
        return [p for p in every if not role or p["metadata"]["labels"].get(label) == role]

    def events(self, kind: str = "MPIJob") -> list[tuple[str, str, str]]:
        """Type, reason and message, in the order of their making."""
        found = [e for e in self.every("api/v1/events") if e["involvedObject"]["kind"] == kind]
        found.sort(key=lambda e: int(e["metadata"]["resourceVersion"]))
        return [(e["type"], e["reason"], e["message"]) for e in found]

    # --- inside ------------------------------------------------------------------------------

    def _in(self, path: str) -> str:
        return re.sub(r"^(apis?/(?:[^/]+/)?v[^/]+)/", rf"/\1/namespaces/{self.namespace}/", path)

    def call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> Object:
        data = None if body is None else json.dumps(body).encode()
        code, content = self._exchange(method, path, data, kind)
        if code >= 400:
            raise Refusal(f"{method} {path}", code, content)
        decoded: Object = json.loads(content)
        return decoded

    def attempt(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        """The answer as it is, to whatever was sent."""
        return self._exchange(method, self._in(path), body, kind)

    def _exchange(self, method: str, path: str, data: bytes | None, kind: str) -> tuple[int, bytes]:
        for again in (True, False):
            connection = self._connection()
            try:
                connection.request(method, path, data, {"Content-Type": kind, **self._headers})
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                self._local.connection = None
                if not again:
                    raise
        raise AssertionError("unreachable")

    def _connection(self) -> http.client.HTTPSConnection:
        found: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if found is None:
            port = self.spec.addresses.port(Port.API)
            found = http.client.HTTPSConnection(
                self.spec.api_host, port, timeout=60, context=self._tls
            )
            self._local.connection = found
            self._opened.append(found)
        return found
