"""AdmissionReview, the part we read and the answers we give. Pure.

A refusal carries every error in one message and each as a cause with its field, so that a person
reads it in `kubectl` and a program in the Status.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.yaml import typed

REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
CREATE, UPDATE = "CREATE", "UPDATE"

# The API server cuts a warning at 256 characters and all of them at 4096.
WARNING_LENGTH = 256
WARNINGS_LENGTH = 4096


class User(ApiValue, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class GroupVersionKind(ApiValue, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class Request(ApiValue, frozen=True):
    uid: str = ""
    kind: GroupVersionKind = GroupVersionKind()
    operation: str = CREATE
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    user_info: User = User()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool = False
    size: int = 0
    """bytes of the whole review"""


class Review(ApiValue, frozen=True):
    request: Request = Request()


def parse(body: bytes) -> Request:
    """The request in a review; msgspec.ValidationError or DecodeError where it is none."""
    return msgspec.structs.replace(typed.decode(body, Review).request, size=len(body))


def allowed(
    request: Request,
    warnings: Iterable[FieldError] = (),
    patch: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": request.uid, "allowed": True}
    if patch:
        encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
        response |= {"patchType": "JSONPatch", "patch": encoded}
    return _answer(response, warnings)


def refused(
    request: Request, errors: Sequence[FieldError], warnings: Iterable[FieldError] = ()
) -> dict[str, Any]:
    causes = [
        {"field": error.field, "reason": _reason(error), "message": _message(error)}
        for error in errors
    ]
    name = request.name or "without a name"
    lines = "\n".join(f"* {error}" for error in errors)
    status = {
        "code": 422,
        "reason": "Invalid",
        "message": f"{request.kind.kind} {name} is invalid:\n{lines}",
        "details": {
            "name": request.name,
            "group": request.kind.group,
            "kind": request.kind.kind,
            "causes": causes,
        },
    }
    response = {"uid": request.uid, "allowed": False, "status": status}
    return _answer(response, warnings)


def _answer(response: dict[str, Any], warnings: Iterable[FieldError]) -> dict[str, Any]:
    told = _fitting([str(warning) for warning in warnings])
    return {**REVIEW, "response": {**response, "warnings": told} if told else response}


def _fitting(lines: Iterable[str]) -> list[str]:
    """As many warnings as the API server passes on, each cut where it would cut it."""
    kept, room = [], WARNINGS_LENGTH
    for line in lines:
        short = line if len(line) <= WARNING_LENGTH else f"{line[: WARNING_LENGTH - 1]}…"
        room -= len(short)
        if room < 0:
            break
        kept.append(short)
    return kept


def _reason(error: FieldError) -> str:
    """Kubernetes' own word for the kind of fault, such as FieldValueInvalid."""
    words = {
        "Required value": "FieldValueRequired",
        "Unsupported value": "FieldValueNotSupported",
        "Duplicate value": "FieldValueDuplicate",
        "Forbidden": "FieldValueForbidden",
        "Too long": "FieldValueTooLong",
        "Invalid type": "FieldValueTypeInvalid",
    }
    return words.get(error.problem, "FieldValueInvalid")


def _message(error: FieldError) -> str:
    return str(error).removeprefix(f"{error.field}: ")
