"""What may leave a cluster in a report of a fault: objects and logs without secrets, cut to a size.

Guarantee: values of environment variables, whole Secrets and ConfigMaps and what kubectl last
applied are never in it, nor in an object that is JSON in an annotation; of all other text what
looks like a key, a token or a password is not.
Danger: a secret that looks like nothing in particular, printed by a program, stays in its log.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from mpi_trainer.api import secret_text
from mpi_trainer.api.yaml import nesting
from mpi_trainer.api.yaml.written import dumped

LARGEST: Final = 1 << 20
"""bytes of one file"""
_WITHHELD: Final = frozenset({"Secret", "ConfigMap"})
_CONTENT: Final = ("data", "stringData", "binaryData")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_DEEPEST: Final = 100
_CUT: Final = "\n[cut: the rest is left out]\n"


def redacted_text(text: str) -> str:
    for step in (
        secret_text.without_keys,
        secret_text.without_tokens,
        secret_text.without_known,
        secret_text.without_named,
        secret_text.without_options,
    ):
        text = step(text)
    return text


def redacted_object(obj: Any) -> Any:
    """The object as it may be shown; of kinds that hold contents, their names are left."""
    if isinstance(obj, list):
        before = ["", *obj[:-1]]
        return [
            secret_text.HIDDEN if _is_value(option, one) else redacted_object(one)
            for option, one in zip(before, obj, strict=False)
        ]
    if isinstance(obj, str):
        return _redacted_string(obj)
    if not isinstance(obj, dict):
        return obj
    made: dict[str, Any] = {}
    for key, value in obj.items():
        if key in ("managedFields", _LAST_APPLIED):
            continue
        if key in _CONTENT and obj.get("kind") in _WITHHELD and isinstance(value, dict):
            made[key] = dict.fromkeys(value, secret_text.HIDDEN)
        elif key == "env" and isinstance(value, list):
            made[key] = [_variable(one) for one in value]
        elif isinstance(value, str) and secret_text.names_a_secret(key):
            made[key] = secret_text.HIDDEN
        else:
            made[key] = redacted_object(value)
    return made


def _is_value(option: Any, one: Any) -> bool:
    """Of an option that stands before it as a word of its own."""
    words = isinstance(option, str) and isinstance(one, str)
    bare = words and option.startswith("-") and "=" not in option and not one.startswith("-")
    return bare and secret_text.names_a_secret(option)


def _redacted_string(text: str) -> str:
    """The conversion of an older job, and others, keep whole specs as JSON in an annotation."""
    data = text.encode(errors="replace")
    if text[:1] not in ("{", "[") or nesting.depth(data) > _DEEPEST:
        return redacted_text(text)
    try:
        inside = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return redacted_text(text)
    return msgspec.json.encode(redacted_object(inside)).decode()


def _variable(one: Any) -> Any:
    if isinstance(one, dict) and "value" in one:
        return {**redacted_object(one), "value": secret_text.HIDDEN}
    return redacted_object(one)


def object_file(obj: Any) -> bytes:
    return bounded(dumped(redacted_object(obj)).encode())


def log_file(text: bytes) -> bytes:
    """The end of a log; a line that a cut began in is not shown."""
    end = text[-LARGEST:]
    if len(text) > LARGEST:
        end = end.partition(b"\n")[2]
    return bounded(redacted_text(end.decode(errors="replace")).encode())


def bounded(content: bytes) -> bytes:
    if len(content) <= LARGEST:
        return content
    return content[: LARGEST - len(_CUT)].decode(errors="ignore").encode() + _CUT.encode()
