"""AdmissionReview: the part that is read, the verdict on it, and the responses. Pure.

A refusal carries every error in one message and each as a cause with its field, so that a person
reads it in `kubectl` and a program in the Status.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from mpi_trainer.api.errors import FieldError
from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.yaml import typed
from mpi_trainer.webhook.borrowed_rights import RightClaim
from mpi_trainer.webhook.resource_demand import JobDemand

REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
CREATE, UPDATE = "CREATE", "UPDATE"

# The API server cuts a warning at 256 characters and all of them at 4096.
WARNING_LENGTH = 256
WARNINGS_LENGTH = 4096

J = TypeVar("J")
Patch = tuple[dict[str, Any], ...]
"""steps of a JSON patch"""


class RequestUser(ApiValue, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class GroupVersionKind(ApiValue, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(ApiValue, frozen=True):
    uid: str = ""
    kind: GroupVersionKind = GroupVersionKind()
    request_kind: GroupVersionKind | None = None
    """as the client wrote it, where the API server has converted the object since"""
    operation: str = CREATE
    namespace: str = ""
    name: str = ""
    sub_resource: str = ""
    user_info: RequestUser = RequestUser()
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool = False
    size: int = 0
    """bytes of the whole review"""

    @property
    def new(self) -> dict[str, Any]:
        return self._in_namespace(self.object)

    @property
    def old(self) -> dict[str, Any]:
        return self._in_namespace(self.old_object)

    def _in_namespace(self, data: dict[str, Any] | None) -> dict[str, Any]:
        """With the namespace that the request is for, which the object itself may leave open."""
        found = data or {}
        meta = found.get("metadata") or {}
        if not isinstance(meta, Mapping):
            return {**found}
        return {**found, "metadata": {**meta, "namespace": self.namespace}}


class Review(ApiValue, frozen=True):
    request: AdmissionRequest = AdmissionRequest()


class NeededChecks(msgspec.Struct, frozen=True):
    """Whether the user has a right to the `claims`; whether the quotas have room for `demand`, and
    with `quota_left` whether they have it now; whether the cluster would take the `pods`; which
    jobs are the `users` of a runtime that changes."""

    claims: tuple[RightClaim, ...] = ()
    demand: JobDemand | None = None
    quota_left: bool = True
    pods: bool = False
    users: bool = False


class AdmissionVerdict(msgspec.Struct, Generic[J], frozen=True):
    """`job` is None where it cannot be read as a whole, or where nothing is to be asked about it;
    the claims in `needed` are asked all the same. `before`: the job before the change."""

    job: J | None = None
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[FieldError, ...] = ()
    needed: NeededChecks = NeededChecks()
    before: J | None = None


def parse(body: bytes) -> AdmissionRequest:
    """The request in a review; msgspec.ValidationError or DecodeError where it is none."""
    return msgspec.structs.replace(typed.decode(body, Review).request, size=len(body))


def allowed(
    request: AdmissionRequest,
    warnings: Iterable[FieldError] = (),
    patch: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": request.uid, "allowed": True}
    if patch:
        encoded = base64.b64encode(msgspec.json.encode(patch)).decode()
        response |= {"patchType": "JSONPatch", "patch": encoded}
    return _review(response, warnings)


def refused(
    request: AdmissionRequest, errors: Sequence[FieldError], warnings: Iterable[FieldError] = ()
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
    return _review(response, warnings)


def _review(response: dict[str, Any], warnings: Iterable[FieldError]) -> dict[str, Any]:
    kept = _first_warnings(str(warning) for warning in warnings)
    return {**REVIEW, "response": {**response, "warnings": kept} if kept else response}


def _first_warnings(lines: Iterable[str]) -> list[str]:
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
