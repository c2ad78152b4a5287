"""kubeconfig files: what is in them, and several of them as one.

Files are merged as kubectl does: for every name, and for `current-context`, the first file that
has it wins. Paths inside a file are relative to that file. A message names file and field, never
a value, since most values here are secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.yaml_events import safe_loader
from mpi_trainer.kube.errors import ConfigError


class _Entry(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a kubeconfig; unknown fields are somebody else's."""


class Extension(_Entry, frozen=True):
    name: str = ""
    extension: Any = None


class Cluster(_Entry, frozen=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[Extension, ...] | None = None


class Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A program that gives credentials."""

    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(_Entry, frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] | None = None
    as_user_extra: Mapping[str, tuple[str, ...]] | None = None
    exec: Exec | None = None
    auth_provider: Any = None

    def __repr__(self) -> str:
        return "User(…)"


class Context(_Entry, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Entry, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(_Entry, frozen=True):
    name: str
    user: User | None = None

    def __repr__(self) -> str:
        return f"_NamedUser({self.name!r})"


class _NamedContext(_Entry, frozen=True):
    name: str
    context: Context | None = None


class _File(_Entry, frozen=True):
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None
    current_context: str | None = None


class Kubeconfig(msgspec.Struct, frozen=True):
    """All files together. `clusters` and `users` come with the folder that their paths start in."""

    clusters: Mapping[str, tuple[Cluster, Path]]
    users: Mapping[str, tuple[User, Path]]
    contexts: Mapping[str, Context]
    current: str
    files: tuple[Path, ...]


def read(paths: Sequence[Path]) -> Kubeconfig:
    """The files that exist, merged."""
    clusters: dict[str, tuple[Cluster, Path]] = {}
    users: dict[str, tuple[User, Path]] = {}
    contexts: dict[str, Context] = {}
    current, seen = "", []
    for path in dict.fromkeys(paths):
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        file, folder = _parse(path, text), path.absolute().parent
        seen.append(path)
        current = current or file.current_context or ""
        for cluster in file.clusters or ():
            clusters.setdefault(cluster.name, (cluster.cluster or Cluster(), folder))
        for user in file.users or ():
            users.setdefault(user.name, (user.user or User(), folder))
        for context in file.contexts or ():
            contexts.setdefault(context.name, context.context or Context())
    return Kubeconfig(clusters, users, contexts, current, tuple(seen))


def _parse(path: Path, text: bytes) -> _File:
    try:
        return typed.convert(_document(path, text) or {}, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: not a kubeconfig: {error}") from None


def _document(path: Path, text: bytes) -> Any:
    try:
        return yaml.load(text, Loader=safe_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigError(f"{where}: not a kubeconfig: {problem}") from None
