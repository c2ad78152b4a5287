"""What an object says it is, by apiVersion and kind, and whether that is one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpi_trainer.api.errors import NOT_SUPPORTED, REQUIRED, FieldError
from mpi_trainer.api.kinds import mpijob, runtime, trainjob
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.yaml.attachments import CONFIG_MAP, CORE_VERSION, SECRET

Kinds = Mapping[str, str]

MPIJOB_FILE: Kinds = {
    mpijob.KIND: mpijob.API_VERSION,
    CONFIG_MAP: CORE_VERSION,
    SECRET: CORE_VERSION,
}
ANY_FILE: Kinds = {
    **MPIJOB_FILE,
    trainjob.KIND: trainjob.API_VERSION,
    **dict.fromkeys(runtime.KINDS, trainjob.API_VERSION),
}

_LEGACY = (
    f"write `apiVersion: {mpijob.API_VERSION}` and move cleanPodPolicy, backoffLimit,"
    " activeDeadlineSeconds and ttlSecondsAfterFinished under spec.runPolicy"
)


def errors(data: Mapping[str, Any], kinds: Kinds) -> list[FieldError]:
    """Empty where `data` is of one of `kinds`."""
    usual = next(iter(kinds.items()))
    missing = [
        FieldError((field,), REQUIRED, rule="must be set", remedy=f"add `{field}: {usual_one}`")
        for field, usual_one in (("apiVersion", usual[1]), ("kind", usual[0]))
        if not isinstance(data.get(field), str) or not data[field]
    ]
    if missing:
        return missing
    version, kind = data["apiVersion"], data["kind"]
    return [] if kinds.get(kind) == version else [_wrong(version, kind, kinds)]


def _wrong(version: str, kind: str, kinds: Kinds) -> FieldError:
    if kind == mpijob.KIND and kind in kinds and version.startswith("kubeflow.org/"):
        rule = f"only {mpijob.API_VERSION} is served"
        return FieldError(("apiVersion",), NOT_SUPPORTED, version, rule, _LEGACY)
    if kind in kinds:
        rule, remedy = (
            f"a {kind} has the apiVersion {kinds[kind]}",
            f"write `apiVersion: {kinds[kind]}`",
        )
        return FieldError(("apiVersion",), NOT_SUPPORTED, version, rule, remedy)
    if kind in ANY_FILE:
        rule = f"a {kind} is not taken here"
        remedy = f"write the job as an {next(iter(kinds))}"
        return FieldError(("kind",), NOT_SUPPORTED, kind, rule, remedy)
    meant = nearest(kind, kinds)
    rule = f"a job file holds {_listed(kinds)} only"
    remedy = f"did you mean `{meant}`?" if meant else "keep other objects in a file of their own"
    return FieldError(("kind",), NOT_SUPPORTED, kind, rule, remedy)


def _listed(kinds: Kinds) -> str:
    *names, last = (f"{kind}s" for kind in kinds)
    return f"{', '.join(names)} and {last}"
