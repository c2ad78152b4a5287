"""ConfigMap and Secret, `v1`: the objects that a job file may bring along for its pods to mount.

`files` is what a pod sees: file name → content. Danger: a Secret's content is in memory in the
clear; its `repr` shows the name only, and no error quotes a value.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from mpi_trainer.api import names
from mpi_trainer.api.errors import DUPLICATE, INVALID, REQUIRED, TOO_LONG, FieldError
from mpi_trainer.api.kinds.meta import ApiValue, ObjectMeta

CORE_VERSION = "v1"
CONFIG_MAP = "ConfigMap"
SECRET = "Secret"
MAX_BYTES = 1024 * 1024


class ConfigMap(ApiValue, frozen=True):
    api_version: str = CORE_VERSION
    kind: str = CONFIG_MAP
    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] = {}
    binary_data: Mapping[str, str] = {}
    immutable: bool | None = None

    @property
    def files(self) -> dict[str, bytes]:
        binary = {name: base64.b64decode(text) for name, text in self.binary_data.items()}
        return {**binary, **{name: text.encode() for name, text in self.data.items()}}


class Secret(ApiValue, frozen=True):
    api_version: str = CORE_VERSION
    kind: str = SECRET
    metadata: ObjectMeta = ObjectMeta()
    data: Mapping[str, str] = {}
    string_data: Mapping[str, str] = {}
    type: str = "Opaque"
    immutable: bool | None = None

    def __repr__(self) -> str:
        return f"Secret({self.metadata.name!r})"

    @property
    def files(self) -> dict[str, bytes]:
        """Content by file name; `stringData` wins over `data`, as in the API server."""
        coded = {name: base64.b64decode(text) for name, text in self.data.items()}
        return {**coded, **{name: text.encode() for name, text in self.string_data.items()}}


def errors(item: ConfigMap | Secret) -> tuple[FieldError, ...]:
    """What is wrong with it; `files` is safe to read only where nothing is."""
    found = _name_errors(item)
    coded, field = (
        (item.data, "data") if isinstance(item, Secret) else (item.binary_data, "binaryData")
    )
    plain, plain_field = (
        (item.string_data, "stringData") if isinstance(item, Secret) else (item.data, "data")
    )
    for name, text in coded.items():
        found += _key_errors(field, name)
        if not _base64(text):
            remedy = f"encode the value with base64, or write it as text under {_text_field(item)}"
            found.append(FieldError((field, name), INVALID, rule="must be base64", remedy=remedy))
    for name in plain:
        found += _key_errors(plain_field, name)
        if isinstance(item, ConfigMap) and name in coded:
            rule = "is under data and binaryData"
            found.append(FieldError((field, name), DUPLICATE, rule=rule, remedy="keep one"))
    if not found and sum(map(len, item.files.values())) > MAX_BYTES:
        rule, remedy = f"must not exceed {MAX_BYTES} bytes in all", "use a volume for large files"
        found.append(FieldError((field,), TOO_LONG, rule=rule, remedy=remedy))
    return tuple(found)


def _text_field(item: ConfigMap | Secret) -> str:
    return "stringData" if isinstance(item, Secret) else "data"


def _name_errors(item: ConfigMap | Secret) -> list[FieldError]:
    path, name = ("metadata", "name"), item.metadata.name
    if not name:
        rule = f"a {item.kind} must have a name"
        return [FieldError(path, REQUIRED, rule=rule, remedy="add the name that the job mounts")]
    fault = names.dns1123_subdomain(name)
    return [FieldError(path, INVALID, name, fault.rule, fault.remedy)] if fault else []


def _key_errors(field: str, name: str) -> list[FieldError]:
    fault = names.data_key(name)
    return [FieldError((field, name), INVALID, name, fault.rule, fault.remedy)] if fault else []


def _base64(text: str) -> bool:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
