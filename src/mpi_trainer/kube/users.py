"""A user of a kubeconfig as what goes with requests: credentials, and whom to act as."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mpi_trainer.kube.credentials import Credentials, Fixed, TokenFile, basic, bearer
from mpi_trainer.kube.errors import ConfigError
from mpi_trainer.kube.kubeconfig import User

Headers = tuple[tuple[str, str], ...]


def credentials(user: User, folder: Path, cluster: Mapping[str, Any]) -> Credentials:
    """Where this user's credential comes from; `cluster` is for programs that want to know."""
    if user.auth_provider is not None:
        raise ConfigError("auth-provider: was removed from Kubernetes; use an exec plugin instead")
    if (user.token or user.token_file) and user.username:
        raise ConfigError("token, username: two ways to log in at once; keep one of them")
    if user.token_file:
        return TokenFile(folder / user.token_file, last=user.token)
    if user.token:
        return Fixed(bearer(user.token))
    if user.username or user.password:
        return Fixed(basic(user.username, user.password))
    if user.exec:
        # Programs are run only for accounts that have one.
        from mpi_trainer.kube.plugins import Plugin

        return Plugin(user.exec, folder, cluster)
    return Fixed()


def impersonation(user: User, as_user: str | None) -> Headers:
    """The headers to act as somebody else; `as_user` takes the place of all that the file says."""
    if as_user:
        return (("Impersonate-User", _one_line(as_user)),)
    headers = tuple(_impersonation(user))
    if headers and not user.as_:
        raise ConfigError("as-uid, as-groups, as-user-extra: they need `as`, the user to act as")
    return headers


def _impersonation(user: User) -> Iterator[tuple[str, str]]:
    if user.as_:
        yield "Impersonate-User", _one_line(user.as_)
    if user.as_uid:
        yield "Impersonate-Uid", _one_line(user.as_uid)
    for group in user.as_groups or ():
        yield "Impersonate-Group", _one_line(group)
    for key, values in (user.as_user_extra or {}).items():
        name = f"Impersonate-Extra-{quote(key.lower(), safe='')}"
        yield from ((name, _one_line(value)) for value in values)


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ConfigError("as: the names to act as hold characters that cannot be sent")
    return text


def from_base64(data: str, field: str) -> bytes:
    """What a field with base64 holds."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{field}: not base64; copy it again") from None
