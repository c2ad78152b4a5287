"""What reading shows of a job or runtime for MPI: what would keep it from working, and why.

Validation has said what is wrong with the fields themselves; nothing of that is said again here.
A warning is SUSPICIOUS and stops nothing; anything else would fail where it runs. `restricted`: the
namespace refuses pods that do not say what Pod Security's restricted profile demands.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from mpi_trainer.api import bounds, quantities
from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.effective.combine import AUTO
from mpi_trainer.api.errors import FORBIDDEN, SUSPICIOUS, FieldError, Path
from mpi_trainer.api.kinds.annotations import SSH
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.kinds.pods import Container, ContainerSecurity, PodSecurity
from mpi_trainer.api.kinds.runtime import MPI, Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation.mpijob_warnings import too_many_ranks
from mpi_trainer.check.pods import JobPods, RolePods, mpijob_pods, trainjob_pods
from mpi_trainer.check.smoke import job_of
from mpi_trainer.layout.agent.paths import PORT
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.layout.mpi_layout import ROOT_SSH

Found = Iterator[FieldError]

INJECT: Final = "sidecar.istio.io/inject"


def mpijob_lint(job: MPIJob, *, restricted: bool = False) -> tuple[FieldError, ...]:
    """Of a validated job."""
    return _all(mpijob_pods(mpijob_with_defaults(job)), restricted)


def trainjob_lint(
    job: TrainJob, runtime: Runtime, *, restricted: bool = False
) -> tuple[FieldError, ...]:
    """Of a validated job that fits its runtime."""
    pods = trainjob_pods(job, runtime) if runtime.policy == MPI else None
    if pods is None:
        return ()
    words = (*pods.launcher.main.command, *pods.launcher.main.args)
    path, slots = ("spec", "trainer", "command"), pods.hosts * pods.slots
    ranks = too_many_ranks(path, words, slots, "numNodes or numProcPerNode")
    return (*ranks, *_all(pods, restricted))


def runtime_lint(runtime: Runtime, *, restricted: bool = False) -> tuple[FieldError, ...]:
    """Of a validated runtime, whatever job may come."""
    if runtime.policy != MPI:
        return ()
    return _all(trainjob_pods(job_of(runtime, ""), runtime, alone=True), restricted)


def _all(pods: JobPods | None, restricted: bool) -> tuple[FieldError, ...]:
    """As many as anybody reads."""
    found = _found(pods, restricted) if pods is not None else ()
    return tuple(itertools.islice(found, bounds.ERRORS))


def _found(pods: JobPods, restricted: bool) -> Found:
    yield from _slots(pods)
    yield from _launcher_resources(pods)
    yield from _images(pods)
    yield from _sshd(pods)
    for role in pods.roles:
        yield from _sidecar(role)
        yield from _ports(pods, role)
        yield from _rights(role, restricted)


def _slots(pods: JobPods) -> Found:
    """More ranks than CPUs share them, and MPI's ranks spin while they wait."""
    amounts = pods.workers.main.resources
    cpus = _number(amounts.limits.get("cpu", amounts.requests.get("cpu")))
    if cpus is not None and pods.slots != AUTO and pods.slots > max(cpus, Decimal(1)):
        rule = f"{pods.slots} ranks share the {cpus:f} CPUs of a worker"
        remedy = "give a worker as many CPUs as it has ranks, or lower the slots"
        yield FieldError(pods.slots_at, SUSPICIOUS, pods.slots, rule, remedy)


def _launcher_resources(pods: JobPods) -> Found:
    """Where the launcher runs ranks, a TrainJob's own resources reach it too."""
    if pods.alone and pods.launcher_runs_ranks:
        return
    given, workers = pods.launcher.main.resources, pods.workers.main.resources
    if given.requests or given.limits or not (pods.alone or workers.requests or workers.limits):
        return
    rule = "the launcher asks for no CPU or memory: a full node evicts it first, and a quota may "
    remedy = "set requests, such as cpu: 500m and memory: 512Mi"
    path = (*pods.launcher.path, "spec", "containers", _place(pods.launcher), "resources")
    yield FieldError(path, SUSPICIOUS, rule=f"{rule}refuse it", remedy=remedy)


def _images(pods: JobPods) -> Found:
    one, other = pods.launcher.main.image, pods.workers.main.image
    path = (*pods.workers.path, "spec", "containers", _place(pods.workers), "image")
    if one != other:
        rule = f"the launcher's image is another ({one or 'none'}), and both need the same MPI"
        remedy = "use one image, or make sure that the MPI versions are the same"
        yield FieldError(path, SUSPICIOUS, other, rule, remedy)
    name = other.rpartition("/")[2].lower().replace("-", "")
    named = next((mpi.name for mpi in REGISTRY if mpi.name.lower() in name), pods.implementation)
    if named != pods.implementation:
        rule = f"looks like an image for {named}, and the job is for {pods.implementation}"
        remedy = f"set the MPI implementation to {named}, or choose another image"
        yield FieldError(path, SUSPICIOUS, other, rule, remedy)


def _sshd(pods: JobPods) -> Found:
    """Of workers that start sshd themselves; else the controller's own serves any user."""
    if pods.agent.managed:
        return
    main, path = pods.workers.main, (*pods.workers.path, "spec")
    words = (*main.command, *main.args)
    if words and not any("sshd" in word for word in words):
        rule = "workers run no sshd that can be seen here, and MPI starts their ranks over SSH"
        remedy = f"leave the command out, or set the annotation {SSH}: managed"
        where = (*path, "containers", _place(pods.workers), "command")
        yield FieldError(where, SUSPICIOUS, words[0], rule, remedy)
    pod, own = pods.workers.view.spec.security_context, main.security_context
    if _strict(pod, own) and pods.ssh_auth_mount_path.rstrip("/") == ROOT_SSH:
        rule = f"the keys are in {ROOT_SSH}, which only root reads, and root is not allowed"
        remedy = f"set sshAuthMountPath to the user's .ssh, or the annotation {SSH}: managed"
        yield FieldError((*path, "securityContext", "runAsNonRoot"), SUSPICIOUS, True, rule, remedy)


def _sidecar(role: RolePods) -> Found:
    """A proxy beside the ranks takes their ports, and keeps a pod from ending. Where the pods say
    nothing, the controller has it left out."""
    meta = role.view.metadata
    field = "labels" if INJECT in meta.labels else "annotations"
    said = meta.labels.get(INJECT, meta.annotations.get(INJECT, "false"))
    if said != "false":
        rule = "Istio adds a sidecar, which takes MPI's connections and keeps the pods from ending"
        path = (*role.path, "metadata", field, INJECT)
        yield FieldError(path, SUSPICIOUS, said, rule, 'remove it, or set it to "false"')


def _ports(pods: JobPods, role: RolePods) -> Found:
    path = (*role.path, "spec")
    managed = pods.agent.managed and role is pods.workers
    if role.view.spec.host_network and role is pods.workers:
        rule = f"two workers on one node would both serve SSH on its port {PORT if managed else 22}"
        remedy = "keep workers apart by podAntiAffinity, or remove hostNetwork"
        yield FieldError((*path, "hostNetwork"), SUSPICIOUS, True, rule, remedy)
    for n, container in enumerate(role.containers):
        for k, port in enumerate(_ports_of(container)):
            where = (*path, "containers", n, "ports", k)
            if port.get("hostPort") and role is pods.workers:
                rule = "two workers cannot be on one node with this port of it"
                remedy = "remove hostPort: pods of a job reach each other without it"
                field = (*where, "hostPort")
                yield FieldError(field, SUSPICIOUS, port["hostPort"], rule, remedy)
            elif managed and port.get("containerPort") == PORT and n != _place(role):
                rule = "the sshd of the worker uses this port"
                field = (*where, "containerPort")
                yield FieldError(field, SUSPICIOUS, PORT, rule, "choose another port")


def _ports_of(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = container.get("ports")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _rights(role: RolePods, restricted: bool) -> Found:
    """What the restricted profile refuses; certain where the namespace enforces it."""
    problem = FORBIDDEN if restricted else SUSPICIOUS
    spec, path = role.view.spec, (*role.path, "spec")
    where = "the namespace enforces" if restricted else "most projects of OpenShift have"
    for n, container in enumerate(spec.containers):
        context = container.security_context
        field = (*path, "containers", n, "securityContext")
        for name, value, wrong in _forbidden(spec.security_context, context):
            rule = f"{wrong}, which the restricted profile forbids, and {where} it"
            remedy = "remove it: the controller's sshd and agent need no rights"
            yield FieldError((*field, name), problem, value, rule, remedy)
        if restricted:
            yield from _missing(field, spec.security_context, context)


def _forbidden(pod: PodSecurity, own: ContainerSecurity) -> Iterable[tuple[str, object, str]]:
    user = pod.run_as_user if own.run_as_user is None else own.run_as_user
    if user == 0:
        yield "runAsUser", 0, "it runs as root"
    if own.privileged:
        yield "privileged", True, "it is privileged"
    more = [name for name in own.capabilities.add if name != "NET_BIND_SERVICE"]
    if more:
        yield "capabilities", more[0], "it adds a capability"


def _missing(field: Path, pod: PodSecurity, own: ContainerSecurity) -> Found:
    rule = "the namespace enforces the restricted profile, which demands it"
    if not _strict(pod, own):
        yield FieldError((*field, "runAsNonRoot"), FORBIDDEN, rule=rule, remedy="set it to true")
    if own.allow_privilege_escalation is not False:
        where = (*field, "allowPrivilegeEscalation")
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="set it to false")
    if "ALL" not in own.capabilities.drop:
        where = (*field, "capabilities", "drop")
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="set it to [ALL]")
    profile = own.seccomp_profile or pod.seccomp_profile
    if profile is None or profile.type == "Unconfined":
        where = (*field, "seccompProfile")
        yield FieldError(where, FORBIDDEN, rule=rule, remedy="set its type to RuntimeDefault")


def _strict(pod: PodSecurity, own: ContainerSecurity) -> bool:
    return bool(pod.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root)


def _place(role: RolePods) -> int:
    """Which container of the pods runs the job."""
    main: Container = role.main
    return next((n for n, one in enumerate(role.view.spec.containers) if one == main), 0)


def _number(amount: str | int | float | None) -> Decimal | None:
    try:
        return None if amount is None else quantities.parse(amount)
    except ValueError:
        return None
