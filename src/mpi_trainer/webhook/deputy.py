"""What a job asks of the cluster that its user may not be allowed to ask alone. Pure.

The controller makes the pods with its own identity, so whatever a template names, it is the
controller that gets it: another service account's token, a folder of the node, a place on any
node. Each such wish is a claim. A claim is granted to a user who could have made the pod, or who
holds the one right that the claim is about. Danger: a wish that is not listed here is granted to
everyone who may create a job.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from mpi_trainer.api.effective import Effective, effective
from mpi_trainer.api.errors import FORBIDDEN, FieldError, Path, field
from mpi_trainer.api.mpijob import LAUNCHER, WORKER, MPIJob
from mpi_trainer.api.pods import Container, PodSpec
from mpi_trainer.api.runtime import CLUSTER, Runtime
from mpi_trainer.api.trainjob import TrainJob

DEFAULT_ACCOUNT = "default"
KEY_SUFFIX = "-ssh"
TRAIN_KEY_SUFFIX = "-mpi-ssh-auth"


class Right(msgspec.Struct, frozen=True):
    """One question to the API server's authoriser."""

    verb: str
    resource: str
    group: str = ""
    name: str = ""
    cluster: bool = False

    def words(self) -> str:
        what = f"{self.resource}/{self.name}" if self.name else self.resource
        return f"{self.verb} {what}"


MAKE_PODS = Right("create", "pods")


class Claim(msgspec.Struct, frozen=True):
    """A wish, where it is written, and the rights of which any one is enough."""

    path: Path
    value: object
    wish: str
    rights: tuple[Right, ...]

    def refusal(self, user: str) -> FieldError:
        wanted = " or ".join(f"`{right.words()}`" for right in self.rights)
        rule = f"{self.wish}, and {user} may not {wanted} in this namespace"
        remedy = "remove it, or ask an administrator for that right"
        return FieldError(self.path, FORBIDDEN, self.value, rule, remedy)

    @property
    def ask(self) -> tuple[str | int, object, str]:
        """The role, what is asked for, and why it matters; not the place in a list."""
        return self.path[0], self.value, self.wish


def claims(job: MPIJob) -> tuple[Claim, ...]:
    roles = ((LAUNCHER, job.launcher), (WORKER, job.worker))
    found: list[Claim] = []
    for role, replica in roles:
        if role in (job.spec.mpi_replica_specs or {}):
            path: Path = ("spec", "mpiReplicaSpecs", role, "template", "spec")
            found += _pod(path, replica.template.view.spec, f"{job.name}{KEY_SUFFIX}")
    return tuple(found)


def train_claims(job: TrainJob, runtime: Runtime) -> tuple[Claim, ...]:
    """What the job's patches and variables ask for, and its runtime where users write that too.

    A ClusterTrainingRuntime is an administrator's word: whoever may create a job may use it.
    """
    own = f"{job.name}{TRAIN_KEY_SUFFIX}"
    plain = replace(job, spec=replace(job.spec, trainer=None, initializer=None, runtime_patches=()))
    given = {claim.ask for claim in _together(effective(plain, runtime), own)}
    trusted = given if runtime.kind == CLUSTER else set()
    found = []
    for claim in _together(effective(job, runtime), own):
        if claim.ask not in trusted:
            path = ("spec", "runtimeRef", "name") if claim.ask in given else ("spec",)
            found.append(replace(claim, path=path, wish=f"{field(claim.path)}: {claim.wish}"))
    return tuple(found)


def _together(job: Effective, own: str) -> Iterator[Claim]:
    for one in job.jobs:
        yield from _pod((one.name,), one.template.view.spec, own)


def _pod(path: Path, spec: PodSpec, own: str) -> Iterator[Claim]:
    account = spec.service_account_name
    if account and account != DEFAULT_ACCOUNT:
        rights = (MAKE_PODS, Right("impersonate", "serviceaccounts", name=account))
        wish = "the pods would act as this service account"
        yield Claim((*path, "serviceAccountName"), account, wish, rights)
    if spec.node_name:
        wish = "the pod would go to this node, past the scheduler"
        yield Claim((*path, "nodeName"), spec.node_name, wish, (MAKE_PODS,))
    if spec.priority_class_name:
        rights = (
            MAKE_PODS,
            Right(
                "use",
                "priorityclasses",
                "scheduling.k8s.io",
                spec.priority_class_name,
                cluster=True,
            ),
        )
        wish = "the pods could push others off their nodes"
        yield Claim((*path, "priorityClassName"), spec.priority_class_name, wish, rights)
    shared = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    for name, on in shared.items():
        if on:
            wish = "the pods would share this with their node"
            yield Claim((*path, name), on, wish, (MAKE_PODS,))
    yield from _volumes(path, spec, own)
    for kind, listed in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for n, container in enumerate(listed):
            yield from _container((*path, kind, n), container, own)


def _volumes(path: Path, spec: PodSpec, own: str) -> Iterator[Claim]:
    for n, volume in enumerate(spec.volumes):
        where = (*path, "volumes", n)
        if volume.host_path is not None:
            wish = "the pods would see this folder of their node"
            yield Claim((*where, "hostPath", "path"), volume.host_path.path, wish, (MAKE_PODS,))
        if volume.secret is not None:
            yield from _key((*where, "secret", "secretName"), volume.secret.secret_name, own)


def _container(path: Path, container: Container, own: str) -> Iterator[Claim]:
    if container.security_context.privileged:
        wish = "the container would own its node"
        where = (*path, "securityContext", "privileged")
        yield Claim(where, True, wish, (MAKE_PODS,))
    for n, variable in enumerate(container.env):
        ref = variable.value_from.secret_key_ref if variable.value_from else None
        if ref is not None:
            where = (*path, "env", n, "valueFrom", "secretKeyRef", "name")
            yield from _key(where, ref.name, own)
    for n, source in enumerate(container.env_from):
        if source.secret_ref is not None:
            where = (*path, "envFrom", n, "secretRef", "name")
            yield from _key(where, source.secret_ref.name, own)


def _key(path: Path, secret: str, own: str) -> Iterator[Claim]:
    """Such a Secret opens every pod of its job: only that job may hold it."""
    if secret.endswith((KEY_SUFFIX, TRAIN_KEY_SUFFIX)) and secret != own:
        wish = "a Secret of this name holds the keys of another job"
        yield Claim(path, secret, wish, (Right("get", "secrets", name=secret),))
