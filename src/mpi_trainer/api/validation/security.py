"""Security contexts (area 9): contradictions that the API server or the kubelet would refuse.

Which of them a namespace allows is not asked here: that is Pod Security's and the SCC's answer,
which only the cluster knows.
"""

from __future__ import annotations

import re

from mpi_trainer.api.errors import FORBIDDEN, INVALID, SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.pods import Container, ContainerSecurity, PodSecurity, PodSpec, Profile
from mpi_trainer.api.validation import rules

LARGEST_ID = 2**31 - 1
PROFILES = ("RuntimeDefault", "Localhost", "Unconfined")
PROC_MOUNTS = ("Default", "Unmasked")
CHANGE_POLICIES = ("OnRootMismatch", "Always")
GROUPS_POLICIES = ("Merge", "Strict")

_SYSCTL = re.compile(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_CONTEXT = "securityContext"


def errors(path: Path, spec: PodSpec) -> rules.Errors:
    yield from _namespaces(path, spec)
    yield from _pod((*path, _CONTEXT), spec.security_context)
    for field, listed in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for n, container in enumerate(listed):
            where = (*path, field, n, _CONTEXT)
            yield from _container(where, container.security_context)
            yield from _root(where, container, spec.security_context)


def warnings(path: Path, spec: PodSpec) -> rules.Errors:
    """Linux nodes ignore what is said to Windows, and the API server takes it."""
    given = {(*path, _CONTEXT): spec.security_context.windows_options}
    for field, listed in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for n, one in enumerate(listed):
            given[*path, field, n, _CONTEXT] = one.security_context.windows_options
    for where, options in given.items():
        if options is not None:
            rule = "has no effect: MPI jobs run on Linux nodes"
            yield FieldError((*where, "windowsOptions"), SUSPICIOUS, rule=rule, remedy="remove it")


def _namespaces(path: Path, spec: PodSpec) -> rules.Errors:
    shared = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    for field, on in shared.items():
        if on and spec.host_users is False:
            rule = "a pod with its own users cannot share this namespace of the host"
            yield FieldError((*path, field), FORBIDDEN, on, rule, f"remove {field} or hostUsers")
    if spec.host_pid and spec.share_process_namespace:
        rule = "cannot be set beside hostPID"
        where = (*path, "shareProcessNamespace")
        yield FieldError(where, INVALID, True, rule, "keep one of the two")


def _pod(path: Path, context: PodSecurity) -> rules.Errors:
    yield from _id((*path, "runAsUser"), context.run_as_user)
    yield from _id((*path, "runAsGroup"), context.run_as_group)
    yield from _id((*path, "fsGroup"), context.fs_group)
    for n, group in enumerate(context.supplemental_groups):
        yield from _id((*path, "supplementalGroups", n), group)
    for field, value, allowed in (
        ("fsGroupChangePolicy", context.fs_group_change_policy, CHANGE_POLICIES),
        ("supplementalGroupsPolicy", context.supplemental_groups_policy, GROUPS_POLICIES),
    ):
        if value:
            yield from rules.one_of((*path, field), value, allowed)
    for n, sysctl in enumerate(context.sysctls):
        if not _SYSCTL.fullmatch(sysctl.name):
            rule = "must be the name of a kernel setting"
            where = (*path, "sysctls", n, "name")
            yield FieldError(where, INVALID, sysctl.name, rule, "write it as `net.core.somaxconn`")
    yield from _profile((*path, "seccompProfile"), context.seccomp_profile)
    yield from _profile((*path, "appArmorProfile"), context.app_armor_profile)


def _container(path: Path, context: ContainerSecurity) -> rules.Errors:
    yield from _id((*path, "runAsUser"), context.run_as_user)
    yield from _id((*path, "runAsGroup"), context.run_as_group)
    if context.allow_privilege_escalation is False:
        where = (*path, "allowPrivilegeEscalation")
        if context.privileged:
            rule = "a privileged container can always gain privileges"
            yield FieldError(where, INVALID, False, rule, "remove `privileged: true`")
        elif "CAP_SYS_ADMIN" in context.capabilities.add:
            rule = "a container with CAP_SYS_ADMIN can always gain privileges"
            yield FieldError(where, INVALID, False, rule, "remove the capability")
    if context.proc_mount:
        yield from rules.one_of((*path, "procMount"), context.proc_mount, PROC_MOUNTS)
    yield from _profile((*path, "seccompProfile"), context.seccomp_profile)
    yield from _profile((*path, "appArmorProfile"), context.app_armor_profile)


def _root(path: Path, container: Container, pod: PodSecurity) -> rules.Errors:
    """A pod that must not be root and has user 0 never starts; the kubelet retries for ever."""
    own = container.security_context
    user = pod.run_as_user if own.run_as_user is None else own.run_as_user
    strict = pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root
    if strict and user == 0:
        rule = "user 0 is root, and runAsNonRoot is set"
        remedy = "choose another user, or leave it out so that the image or the cluster chooses"
        yield FieldError((*path, "runAsUser"), INVALID, 0, rule, remedy)


def _profile(path: Path, profile: Profile | None) -> rules.Errors:
    if profile is None:
        return
    yield from rules.one_of((*path, "type"), profile.type or None, PROFILES)
    where, given = (*path, "localhostProfile"), profile.localhost_profile
    if profile.type == "Localhost" and not given:
        rule = "a profile of the node must be named"
        yield rules.required(where, rule, "name it, or use RuntimeDefault")
    elif profile.type != "Localhost" and given:
        rule = "is only used with type Localhost"
        yield FieldError(where, FORBIDDEN, given, rule, "remove it, or set type: Localhost")
    elif given.startswith("/") or ".." in given.split("/"):
        rule = "must be a relative path without `..`"
        yield FieldError(where, INVALID, given, rule, "name a file below the kubelet's folder")


def _id(path: Path, number: int | None) -> rules.Errors:
    if number is not None and not 0 <= number <= LARGEST_ID:
        rule = f"must be between 0 and {LARGEST_ID}"
        yield FieldError(path, INVALID, number, rule, "leave it out unless the image needs it")
