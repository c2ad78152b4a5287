"""Why the API server would not take a job's pods, as errors in the fields of the job. Pure.

The server's message is about a pod that the user did not write; here it becomes errors at the role
whose template caused it, one for each thing to mend. What may still come by itself, such as a
service account, is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mpi_trainer.api.errors import FORBIDDEN, INVALID, SUSPICIOUS, FieldError, Path
from mpi_trainer.diagnose.refusals import shortened

_POD_SECURITY = re.compile(r'violates PodSecurity "(?P<level>[^"]+)": (?P<list>.*)', re.DOTALL)
_ITEM = re.compile(r"(?P<what>[^()]+) \((?P<where>(?:[^()]|\([^()]*\))*)\)(?:, )?")
_MUST_SPECIFY = re.compile(r"failed quota: (?P<quota>[^:]+): must specify (?P<what>.*)", re.DOTALL)
_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<why>.*)', re.S)
_SCC = "unable to validate against any security context constraint"
# Several stand in brackets, one behind the other.
_FIELD = re.compile(r"(?P<field>spec(?:\.[A-Za-z]+(?:\[\d+\])?)+): ")
# From the admission plugin ServiceAccount.
_NO_ACCOUNT = re.compile(
    r'error looking up service account [^/\s]+/(?P<name>[^:\s]+): serviceaccount "[^"]*" not found'
)
# Containers that we add have the resources of the job's own: users write none for them.
_OWN = re.compile(r",(?:mpi-prepare|mpi-unpack)(?:-\d+)?(?=[,;]|$)")
_LIMITS = re.compile(r"(?:maximum|minimum) \S+ usage per (?:Container|Pod) is .*")


def about_quota(message: str) -> bool:
    """Whether a pod was refused only because the quota is used up now: it may fit later."""
    return "exceeded quota:" in message


def in_role(role: str, message: str) -> tuple[FieldError, ...]:
    """What a refusal of this role's pod means for the job."""
    return at(("spec", "mpiReplicaSpecs", role, "template", "spec"), message)


def at(path: Path, message: str) -> tuple[FieldError, ...]:
    """What a refusal of a pod means, where `path` is that of its spec."""
    return tuple(_errors(path, message.strip()))


def errors_and_warnings(
    found: Iterable[FieldError],
) -> tuple[tuple[FieldError, ...], tuple[FieldError, ...]]:
    """Errors, and warnings of what may still come by itself."""
    every = tuple(found)
    return (
        tuple(one for one in every if one.problem != SUSPICIOUS),
        tuple(one for one in every if one.problem == SUSPICIOUS),
    )


def _errors(path: Path, message: str) -> Iterator[FieldError]:
    if found := _POD_SECURITY.search(message):
        yield from _pod_security(path, found["level"].split(":")[0], found["list"])
    elif found := _MUST_SPECIFY.search(message):
        counted = _OWN.sub("", found["what"])
        rule = f"quota `{found['quota']}` counts {counted}, so every container must say it"
        where = (*path, "containers", 0, "resources")
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="add requests and limits")
    elif found := _NO_ACCOUNT.search(message):
        rule = "there is no such service account, and the pods wait until there is"
        remedy = f"create it: `kubectl create serviceaccount {found['name']}`"
        where = (*path, "serviceAccountName")
        yield FieldError(where, SUSPICIOUS, found["name"], rule, remedy)
    elif found := _WEBHOOK.search(message):
        rule = f"the admission webhook {found['name']} refuses the pods: {found['why']}"
        yield FieldError(path, FORBIDDEN, rule=rule, remedy="change what it names")
    elif _SCC in message:
        rule = f"no security context constraint allows such pods: {shortened(message)}"
        remedy = "leave user, group and capabilities out, so that the cluster chooses them"
        yield FieldError((*path, "securityContext"), FORBIDDEN, rule=rule, remedy=remedy)
    elif found := _LIMITS.search(message):
        rule = f"the namespace's LimitRange: {shortened(found[0])}"
        where = (*path, "containers", 0, "resources")
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="ask for an amount within it")
    elif named := list(_FIELD.finditer(message)):
        ends = (*(one.start() for one in named[1:]), len(message))
        several = "is invalid: [" in message
        for one, end in zip(named, ends, strict=True):
            where = (*path, *_steps(one["field"]))
            why = message[one.end() : end].rstrip().removesuffix("," if end < len(message) else "")
            why = why.removesuffix("]") if several and end == len(message) else why
            remedy = "see the Pod's API reference for this field"
            rule = shortened(why).removeprefix(f"{INVALID}: ")
            yield FieldError(where, INVALID, rule=rule, remedy=remedy)
    else:
        rule = f"the API server refuses the pods: {shortened(message)}"
        yield FieldError(path, FORBIDDEN, rule=rule, remedy="change the pod template")


def _pod_security(path: Path, level: str, listed: str) -> Iterator[FieldError]:
    items = list(_ITEM.finditer(listed))
    if not items:
        rule = f"the namespace allows {level} pods only: {shortened(listed)}"
        yield FieldError(
            (*path, "securityContext"), FORBIDDEN, rule=rule, remedy="change what it names"
        )
    for item in items:
        rule = f"the namespace allows {level} pods only: {item['what'].strip()}"
        where = (*path, "securityContext")
        yield FieldError(where, FORBIDDEN, rule=rule, remedy=item["where"])


def _steps(field: str) -> Iterator[str | int]:
    """`spec.containers[0].image` as a path below `spec`."""
    for part in re.findall(r"[A-Za-z]+|\d+", field)[1:]:
        yield int(part) if part.isdigit() else part
