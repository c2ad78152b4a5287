"""The variables of an initializer, as the public trainer's images have them, and more. Pure.

A variable that is no environment variable may be a file of its name in `CREDENTIALS_DIR`, as a
mounted Secret has them, so that credentials need be in no environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mpi_trainer.initializers.model import FetchError, Role, Settings

WORKSPACE: Final = "/workspace"
SECRETS: Final = (
    "ACCESS_KEY_ID",
    "SECRET_ACCESS_KEY",
    "SESSION_TOKEN",
    "ACCESS_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "HF_TOKEN",
)
NAMES: Final = (
    *SECRETS,
    "STORAGE_URI",
    "TARGET_DIR",
    "ALLOW_PATTERNS",
    "IGNORE_PATTERNS",
    "SHA256",
    "PARALLEL",
    "ENDPOINT",
    "REGION",
    "ADDRESSING",
    "CA_BUNDLE",
    "REVISION",
    "AWS_S3_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_CA_BUNDLE",
    "HF_ENDPOINT",
)
"""all that are read"""
_PATTERNS: Final = ("ALLOW_PATTERNS", "IGNORE_PATTERNS")
_HOST: Final = re.compile(r"(?:[\w.-]{1,255}|\[[0-9a-fA-F:.]{2,45}\])(?::\d{1,5})?", re.ASCII)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SCHEMES: Final = ("hf", "s3", "http", "https", "file")
_MODEL_FILES: Final = ("*.json", "*.safetensors", "*.model", "*.txt")
"""what the public trainer fetches of a model on the hub, where nothing else is said"""


def settings(role: Role, given: Mapping[str, str]) -> Settings:
    """Raises FetchError."""
    for name, value in given.items():
        fits = value.isprintable() and (value.isascii() or name not in SECRETS)
        if name not in _PATTERNS and not fits:
            # Whatever refuses it later repeats it, in a form that nobody would know it by.
            raise FetchError(
                f"{name} has characters that cannot be meant, such as a line's end in the middle",
                "Set it again: one line, as it was given to you.",
            )
    uri, _, fragment = given.get("STORAGE_URI", "").partition("#")
    if not uri:
        raise FetchError(
            "STORAGE_URI is not set: there is nothing to fetch",
            f"Set spec.initializer.{role}.storageUri of the TrainJob, such as hf://owner/name.",
        )
    parts = _address(uri)
    if parts.username is not None or parts.password is not None:
        raise FetchError(
            "STORAGE_URI has a user name or password in it, which anybody who sees the job reads",
            "Remove them, and give ACCESS_TOKEN by a Secret (`secretRef`).",
        )
    scheme, _, rest = uri.partition("://")
    if scheme.lower() not in _SCHEMES:
        raise FetchError(
            f"STORAGE_URI is of the scheme {parts.scheme or '(none)'!r:.40}",
            "Use s3://, hf://, https://, http:// or file://.",
        )
    sha256 = given.get("SHA256", "").strip().lower() or fragment.removeprefix("sha256=")
    if (sha256 or fragment) and not _SHA256.fullmatch(sha256):
        raise FetchError(
            "SHA256 or what follows # in STORAGE_URI is no SHA-256 checksum",
            "Write 64 hexadecimal digits, as `sha256sum FILE` prints them.",
        )
    allow = _patterns(given.get("ALLOW_PATTERNS", ""))
    ignore = _patterns(given.get("IGNORE_PATTERNS", ""))
    if role == "model" and parts.scheme == "hf" and not allow and not ignore:
        allow = _MODEL_FILES
    return Settings(
        role=role,
        uri=f"{parts.scheme}://{rest}",
        target=given.get("TARGET_DIR") or f"{WORKSPACE}/{role}",
        given=given,
        allow=allow,
        ignore=ignore,
        sha256=sha256,
        threads=_threads(given.get("PARALLEL", "")),
    )


def endpoint(text: str) -> str:
    """The address of a server, by https where it does not say. Raises FetchError."""
    if "@" in text:
        raise FetchError(
            "ENDPOINT has a user name or password in it, which would get into logs",
            "Remove them; credentials go into the Secret under names of their own.",
        )
    full = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(full)
        fits = parts.scheme in ("http", "https") and _HOST.fullmatch(parts.netloc) is not None
        fits = fits and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise FetchError(f"ENDPOINT is {text!r:.100}", "Write https://host[:port].")
    return full.rstrip("/")


def _address(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise FetchError(
            f"STORAGE_URI cannot be read: {error}", "Write for example s3://bucket/folder."
        ) from None
    return parts


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _threads(text: str) -> int:
    if not text:
        return 8
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:6]) <= 64:
        raise FetchError(f"PARALLEL is {text!r:.20}", "Set it to a number from 1 to 64.")
    return int(text)
