"""The names that Kubernetes allows, and what to do about one it does not.

Each function returns None for a good name, else a `Fault`: the rule and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
ANNOTATION_BYTES = 256 * 1024

_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_1123.pattern}(\.{_1123.pattern})*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV = re.compile(r"[\x20-\x3c\x3e-\x7e]+")
_SHELL_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DATA_KEY = re.compile(r"[-._a-zA-Z0-9]+")


class Fault(msgspec.Struct, frozen=True):
    rule: str
    remedy: str


def dns1123_label(name: str) -> Fault | None:
    return _label(name, _1123, "start and end with a letter or digit")


def dns1035_label(name: str) -> Fault | None:
    return _label(name, _1035, "start with a letter and end with a letter or digit")


def dns1123_subdomain(name: str) -> Fault | None:
    if len(name) > SUBDOMAIN_LENGTH:
        return _too_long(SUBDOMAIN_LENGTH)
    if not _SUBDOMAIN.fullmatch(name):
        rule = "must consist of lower-case letters, digits, `-` and `.`"
        return Fault(f"{rule}, each part with a letter or digit at both ends", _instead(name))
    return None


def qualified(key: str) -> Fault | None:
    """A label or annotation key, or a resource name: `name` or `domain/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and (fault := dns1123_subdomain(prefix)):
        return Fault(f"its prefix `{prefix}` is no DNS name: {fault.rule}", fault.remedy)
    if len(name) > LABEL_LENGTH:
        return _too_long(LABEL_LENGTH)
    if not _QUALIFIED.fullmatch(name):
        rule = "must be letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
        return Fault(rule, "write it as `name` or `example.com/name`")
    return None


def label_value(value: str) -> Fault | None:
    if len(value) > LABEL_LENGTH:
        fault = _too_long(LABEL_LENGTH)
        return Fault(fault.rule, f"{fault.remedy}, or use an annotation")
    if value and not _QUALIFIED.fullmatch(value):
        rule = "must be letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
        return Fault(rule, "change it, or use an annotation, which takes any text")
    return None


def annotations_too_large(annotations: Mapping[str, str]) -> Fault | None:
    size = sum(len(part.encode()) for pair in annotations.items() for part in pair)
    if size > ANNOTATION_BYTES:
        rule = f"annotations must not exceed {ANNOTATION_BYTES} bytes together, and have {size}"
        return Fault(rule, "move large content into a ConfigMap")
    return None


def env_name(name: str) -> Fault | None:
    if not _ENV.fullmatch(name):
        rule = "must be printable ASCII characters other than `=`"
        return Fault(rule, "use letters, digits and `_`, such as NCCL_DEBUG")
    return None


def shell_env_name(name: str) -> bool:
    return _SHELL_ENV.fullmatch(name) is not None


def data_key(name: str) -> Fault | None:
    """A key of a ConfigMap or Secret, which becomes a file name."""
    if len(name) > SUBDOMAIN_LENGTH:
        return _too_long(SUBDOMAIN_LENGTH)
    if not _DATA_KEY.fullmatch(name) or name == "." or name.startswith(".."):
        rule = "must be letters, digits, `-`, `_` and `.`, and not start with `..`"
        return Fault(rule, "use a plain file name")
    return None


def _label(name: str, syntax: re.Pattern[str], ends: str) -> Fault | None:
    if len(name) > LABEL_LENGTH:
        return _too_long(LABEL_LENGTH)
    if not syntax.fullmatch(name):
        rule = f"must consist of lower-case letters, digits and `-`, and {ends}"
        return Fault(rule, _instead(name.replace(".", "-")))
    return None


def _too_long(limit: int) -> Fault:
    return Fault(f"must be at most {limit} characters", "shorten it")


def _instead(name: str) -> str:
    better = re.sub(r"[^a-z0-9.-]+", "-", name.lower()).lstrip("-.0123456789").rstrip("-.")
    better = re.sub(r"-?\.[.-]*", ".", better)
    return f"write for example `{better[:40].strip('-.') or 'my-job'}`"
