"""Credentials from a program (`exec` in a kubeconfig), as `client.authentication.k8s.io` says.

The program runs without a shell, when its credential is first needed, has expired or was refused.
What it prints is never shown, kept or logged; what it complains about is, as with kubectl.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from mpi_trainer.api.yaml import typed
from mpi_trainer.kube.credentials import Credential, bearer
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.kubeconfig import Exec

_GROUP: Final = "client.authentication.k8s.io"
_VERSIONS: Final = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES: Final = ("Never", "IfAvailable", "Always")
_ALONE, _WITH_USER = 60.0, 600.0
_EARLY: Final = 10.0
_TOO_SOON: Final = 5.0


class _Given(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None

    def __repr__(self) -> str:
        return "_Given(…)"


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Given | None = None


class Plugin:
    """A source of credentials that asks a program. `cluster` is told to it if it wants to know."""

    def __init__(self, entry: Exec, folder: Path, cluster: Mapping[str, Any] | None) -> None:
        self._entry = entry
        self._folder = folder
        self._cluster = cluster
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._expires: float | None = None
        self._made_at = 0.0
        check(entry)

    def ready(self) -> Credential | None:
        if self._expires is not None and time.time() > self._expires - _EARLY:
            return None
        return self._credential

    def fetch(self) -> Credential:
        with self._lock:
            ready = self.ready()
            if ready is not None:
                return ready
            given = self._run()
            self._expires = (
                given.expiration_timestamp.timestamp() if given.expiration_timestamp else None
            )
            self._made_at = time.monotonic()
            self._credential = Credential(
                bearer(given.token) if given.token else "",
                given.client_certificate_data.encode(),
                given.client_key_data.encode(),
            )
            return self._credential

    def refused(self) -> bool:
        # Requests that were refused together need one new credential, not one each.
        with self._lock:
            if time.monotonic() - self._made_at > _TOO_SOON:
                self._credential = None
        return True

    def _run(self) -> _Given:
        entry = self._entry
        interactive = entry.interactive_mode != "Never" and sys.stdin is not None
        interactive = interactive and sys.stdin.isatty()
        if entry.interactive_mode == "Always" and not interactive:
            raise ConfigError(f"exec: {entry.command} must ask its user, and there is no terminal")
        program = self._program()
        try:
            done = subprocess.run(
                [program, *(entry.args or ())],
                env=self._environment(interactive),
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                timeout=_WITH_USER if interactive else _ALONE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ConfigError(f"exec: {entry.command} did not end in time") from None
        except OSError as error:
            raise ConfigError(f"exec: {entry.command}: {error.strerror}") from None
        if done.returncode:
            complaint = (done.stderr or b"").decode(errors="replace").strip()[-500:]
            words = f"exec: {entry.command} ended with {done.returncode}"
            raise ConfigError(f"{words}: {complaint}" if complaint else words)
        return _understood(entry, done.stdout)

    def _program(self) -> str:
        command = self._entry.command
        if os.sep in command:
            return str(self._folder / command)
        found = shutil.which(command)
        if not found:
            hint = self._entry.install_hint.strip()
            raise ConfigError(f"exec: {command} is not installed" + (f"\n\n{hint}" if hint else ""))
        return found

    def _environment(self, interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._entry.provide_cluster_info and self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {"apiVersion": self._entry.api_version, "kind": "ExecCredential", "spec": spec}
        own = {one.name: one.value for one in self._entry.env or ()}
        return {
            **os.environ,
            **own,
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode(),
        }

    def __repr__(self) -> str:
        return f"Plugin({self._entry.command!r})"


def check(entry: Exec) -> None:
    """Refuse what kubectl refuses."""
    if not entry.command:
        raise ConfigError("exec.command: which program? it is missing")
    if entry.api_version not in _VERSIONS:
        known = " or ".join(_VERSIONS)
        raise ConfigError(
            f"exec.apiVersion: {entry.api_version or 'nothing'!r} is not supported;"
            f" update {entry.command} and write {known}"
        )
    if entry.api_version == _VERSIONS[0] and not entry.interactive_mode:
        raise ConfigError(f"exec.interactiveMode: write one of {', '.join(_MODES)}")
    if entry.interactive_mode and entry.interactive_mode not in _MODES:
        raise ConfigError(f"exec.interactiveMode: must be one of {', '.join(_MODES)}")


def _understood(entry: Exec, output: bytes) -> _Given:
    """What the program gave; messages never quote it."""
    try:
        answer = typed.decode(output, _Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConfigError(f"exec: {entry.command} printed no ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != entry.api_version:
        raise ConfigError(
            f"exec: {entry.command} printed {answer.api_version or 'no version'},"
            f" and the kubeconfig says {entry.api_version}; make them the same"
        )
    given = answer.status or _Given()
    if not given.token and not given.client_certificate_data:
        raise ConfigError(f"exec: {entry.command} gave neither a token nor a certificate")
    if bool(given.client_certificate_data) != bool(given.client_key_data):
        raise ConfigError(f"exec: {entry.command} gave only one of certificate and key")
    if given.expiration_timestamp and given.expiration_timestamp.tzinfo is None:
        aware = given.expiration_timestamp.replace(tzinfo=UTC)
        return msgspec.structs.replace(given, expiration_timestamp=aware)
    return given
