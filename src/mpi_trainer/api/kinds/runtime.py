"""TrainingRuntime and ClusterTrainingRuntime, `trainer.kubeflow.org/v1alpha1`.

A runtime is a template for TrainJobs: which framework starts the ranks (`ml_policy`), and the
JobSet that they run in. The JobSet's spec is kept whole, so that a field we have never heard of
reaches the cluster; `jobset` is a partial view of it. Danger: the view leaves out what has the
wrong type; validation names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mpi_trainer.api.kinds.annotations import MPI_IMPLEMENTATION
from mpi_trainer.api.kinds.jobset import JobSetView
from mpi_trainer.api.kinds.meta import ApiObject, ApiValue, Int32, ObjectMeta
from mpi_trainer.api.kinds.mpijob import OPEN_MPI
from mpi_trainer.api.kinds.pods import PodTemplate, without_nulls
from mpi_trainer.api.kinds.trainjob import API_VERSION, TrainJob
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode

NAMESPACED = "TrainingRuntime"
CLUSTER = "ClusterTrainingRuntime"
KINDS = (CLUSTER, NAMESPACED)

MPI = "mpi"
TORCH = "torch"
JAX = "jax"
XGBOOST = "xgboost"
FLUX = "flux"
PLAIN = "plain"


class EnvInjectionTarget(ApiValue, frozen=True):
    job_name: str = ""
    container_names: tuple[str, ...] = ()


class EnvInjection(ApiValue, frozen=True):
    targets: tuple[EnvInjectionTarget, ...] = ()


class TorchPolicy(ApiValue, frozen=True):
    env_injection: EnvInjection | None = None


class MPIPolicy(ApiValue, frozen=True):
    num_proc_per_node: Int32 | None = None
    mpi_implementation: str | None = None
    ssh_auth_mount_path: str | None = None
    run_launcher_as_node: bool | None = None


class FluxPolicy(ApiValue, frozen=True):
    num_proc_per_node: Int32 | None = None


class EmptyPolicy(ApiValue, frozen=True):
    """A policy without settings."""


class MLPolicy(ApiValue, frozen=True):
    num_nodes: Int32 | None = None
    torch: TorchPolicy | None = None
    mpi: MPIPolicy | None = None
    flux: FluxPolicy | None = None
    jax: EmptyPolicy | None = None
    xgboost: EmptyPolicy | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The policies that are set: one at most, in a runtime that is sound."""
        given = {
            TORCH: self.torch,
            MPI: self.mpi,
            FLUX: self.flux,
            JAX: self.jax,
            XGBOOST: self.xgboost,
        }
        return tuple(name for name, policy in given.items() if policy is not None)


class Coscheduling(ApiValue, frozen=True):
    schedule_timeout_seconds: Int32 | None = None


class NetworkTopology(ApiValue, frozen=True):
    mode: str | None = None
    highest_tier_allowed: Int32 | None = None


class Volcano(ApiValue, frozen=True):
    network_topology: NetworkTopology | None = None


class PodGroupPolicy(ApiValue, frozen=True):
    coscheduling: Coscheduling | None = None
    volcano: Volcano | None = None


class JobSetTemplate(ApiValue, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Mapping[str, Any] = {}


class RuntimeSpec(ApiValue, frozen=True):
    ml_policy: MLPolicy | None = None
    pod_group_policy: PodGroupPolicy | None = None
    template: JobSetTemplate = JobSetTemplate()


class Runtime(ApiObject, frozen=True):
    """Either kind; a ClusterTrainingRuntime has no namespace."""

    api_version: str = API_VERSION
    kind: str = ""
    spec: RuntimeSpec = RuntimeSpec()

    @property
    def policy(self) -> str:
        """The framework by name; `plain` where none is set."""
        names = self.spec.ml_policy.names if self.spec.ml_policy else ()
        return names[0] if names else PLAIN

    @property
    def mpi(self) -> MPIPolicy:
        return (self.spec.ml_policy or MLPolicy()).mpi or MPIPolicy()

    @property
    def processes(self) -> int | None:
        """Ranks per node, as the runtime's policy says it."""
        policy = self.spec.ml_policy or MLPolicy()
        given = policy.mpi or policy.flux
        return None if given is None else given.num_proc_per_node

    @property
    def mpi_implementation(self) -> str:
        """The field knows Open MPI only, and Kueue refuses a job where it says more."""
        annotated = self.metadata.annotations.get(MPI_IMPLEMENTATION)
        return annotated or self.mpi.mpi_implementation or OPEN_MPI

    @property
    def jobset(self) -> JobSetView:
        return jobset_view(self.spec.template.spec)


def jobset_view(spec: Mapping[str, Any]) -> JobSetView:
    """The quick way for a spec that is sound; the lenient one for any other."""
    try:
        return typed.convert(without_nulls(spec), JobSetView, _template)
    except (msgspec.ValidationError, TypeError):
        return decode(JobSetView, spec).value


def _template(_kind: type, content: Any) -> PodTemplate:
    if not isinstance(content, Mapping):
        raise TypeError("a pod template is an object")
    return PodTemplate.of(content)


def serves(runtime: Runtime, job: TrainJob) -> bool:
    """Whether `job` names this runtime."""
    ref = job.spec.runtime_ref
    kind = ref.kind or CLUSTER
    near = runtime.kind == CLUSTER or runtime.metadata.namespace == job.namespace
    return (kind, ref.name) == (runtime.kind, runtime.name) and near


def to_wire(runtime: Runtime) -> dict[str, Any]:
    """The runtime as plain JSON-like data, with its template as it came."""
    fields: dict[str, Any] = msgspec.to_builtins(runtime)
    return {"apiVersion": runtime.api_version, "kind": runtime.kind, **fields}
