"""TrainJobs: `AsyncTrainJob` with `await`, and `TrainJob`, made from it, without.

`TrainJobBase` is what both are: made from a few words, a function, a spec or a manifest. What a
function's command is depends on its runtime, so that is asked for when the job is created.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from mpi_trainer.api.defaults import trainjob_with_defaults
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds import trainjob as api
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.runtime import CLUSTER, MPI, NAMESPACED, Runtime
from mpi_trainer.api.kinds.runtime import to_wire as runtime_manifest
from mpi_trainer.api.kinds.trainjob import KIND, RuntimeRef, Trainer, TrainJobSpec, TrainJobStatus
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.check.report import CheckReport
from mpi_trainer.layout.launch import mpi_command
from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.errors import K8sApiException, RuntimeNotFound
from mpi_trainer.sdk.job.handle import AsyncOperations, JobHandle, Operations
from mpi_trainer.sdk.job.mpijob import new_name
from mpi_trainer.sdk.job.specs import ResourceRequirements, amounts, literal, variables
from mpi_trainer.sdk.job.state import JobState, job_state
from mpi_trainer.sdk.synchronous import blocking

replace = msgspec.structs.replace


class TrainingRuntime(msgspec.Struct, frozen=True):
    """What TrainJobs can name: a TrainingRuntime of a namespace, or a ClusterTrainingRuntime.

    framework: `mpi`, `torch`, `jax`, `xgboost`, `flux` or `plain`. num_nodes: where a job says
    none. manifest: the whole object.
    """

    name: str
    kind: str
    namespace: str
    framework: str
    num_nodes: int
    manifest: Mapping[str, Any]


def training_runtime(found: Runtime) -> TrainingRuntime:
    policy = found.spec.ml_policy
    return TrainingRuntime(
        name=found.name,
        kind=found.kind,
        namespace=found.metadata.namespace,
        framework=found.policy,
        num_nodes=(policy.num_nodes if policy else None) or 1,
        manifest=runtime_manifest(found),
    )


async def find_runtime(backend: Backend, name: str, namespace: str, kind: str = "") -> Runtime:
    """The runtime of that name: the namespace's own where there is one, else the cluster's."""
    if not kind:
        try:
            return await backend.runtime(RuntimeRef(name=name, kind=NAMESPACED), namespace)
        except (RuntimeNotFound, K8sApiException):
            kind = CLUSTER
    return await backend.runtime(RuntimeRef(name=name, kind=kind), namespace)


class TrainJobBase(JobHandle):
    """A TrainJob: a program that a runtime starts on several nodes; described here, run by
    `create()`.

    Args:
        name: Its name; lower-case letters, digits and `-`.
        runtime: The TrainingRuntime or ClusterTrainingRuntime that starts it.
        namespace: The namespace (project) it belongs to; by default the connection's own.
        num_nodes: How many nodes; by default as many as the runtime says.
        command: What the runtime starts, as a list of words; by default the runtime's own.
        args: Arguments of the command.
        image: The container image; by default the runtime's.
        resources: What each node needs.
        env: Variables for every node.
        num_proc_per_node: Ranks on each node; by default as many as the runtime says.
        runtime_kind: `TrainingRuntime` for one of the namespace; else it is the cluster's.
        backend: Where it runs; by default as `connect()` finds.
    """

    _kind: ClassVar[str] = KIND
    _definition: api.TrainJob
    _program: str
    """of a function; its command is made when the runtime is known"""

    def __init__(  # noqa: PLR0913 - a job has this many sides; all but two have defaults
        self,
        name: str,
        runtime: str,
        namespace: str = "",
        num_nodes: int | None = None,
        command: Sequence[str] | None = None,
        args: Sequence[str] | None = None,
        image: str | None = None,
        resources: ResourceRequirements | None = None,
        env: Mapping[str, str] | None = None,
        *,
        num_proc_per_node: int | None = None,
        runtime_kind: str = CLUSTER,
        backend: Backend | None = None,
    ) -> None:
        for field, words in (("command", command), ("args", args)):
            if isinstance(words, str):
                raise ValueError(
                    f"{field} must be a list of strings, not the string {words!r}; "
                    f"write for example {words.split()!r}"
                )
        needs = amounts(resources or ResourceRequirements())
        trainer = Trainer(
            image=image,
            command=None if command is None else tuple(map(literal, command)),
            args=None if args is None else tuple(map(literal, args)),
            env=tuple(variables(env or {})),
            num_nodes=num_nodes,
            num_proc_per_node=num_proc_per_node,
            resources_per_node={"requests": needs, "limits": needs} if needs else None,
        )
        ref = RuntimeRef(name=runtime, kind=runtime_kind)
        self._hold(_named(TrainJobSpec(runtime_ref=ref, trainer=trainer), name, namespace), backend)

    def _hold(self, definition: api.TrainJob, backend: Backend | None) -> None:
        self._definition = definition
        self._backend = backend
        self._seen = None
        self._program = ""

    def _note(self, job: JobView) -> JobState:
        self._definition = decode(api.TrainJob, job.manifest).value
        self._seen = job_state(job)
        return self._seen

    @classmethod
    def _of(cls, definition: api.TrainJob, backend: Backend | None) -> Self:
        made = cls.__new__(cls)
        made._hold(definition, backend)
        return made

    @classmethod
    def from_function(  # noqa: PLR0913 - the same sides as a job from a command
        cls,
        train: Callable[..., object],
        *,
        runtime: str,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        name: str | None = None,
        namespace: str = "",
        num_nodes: int | None = None,
        image: str | None = None,
        resources: ResourceRequirements | None = None,
        env: Mapping[str, str] | None = None,
        num_proc_per_node: int | None = None,
        runtime_kind: str = CLUSTER,
        backend: Backend | None = None,
    ) -> Self:
        """A job whose every rank calls the function `train(*args, **kwargs)`.

        It travels as `MPIJob.from_function` says. A runtime with MPI starts it under mpirun and
        needs mpi4py in its image; one with torch by torchrun; any other once on each node.

        Raises:
            NotShippable: The function needs something that cannot travel; names it and its line.
        """
        from mpi_trainer.sdk.code import functions

        made = cls(
            name or new_name(train.__name__),
            runtime,
            namespace,
            num_nodes,
            image=image,
            resources=resources,
            env=env,
            num_proc_per_node=num_proc_per_node,
            runtime_kind=runtime_kind,
            backend=backend,
        )
        made._program = functions.program(train, args, kwargs or {})
        return made

    @classmethod
    def from_spec(
        cls, name: str, spec: TrainJobSpec, namespace: str = "", *, backend: Backend | None = None
    ) -> Self:
        """A job with everything that its API has."""
        return cls._of(_named(spec, name, namespace), backend)

    @classmethod
    def from_manifest(
        cls, manifest: str | Mapping[str, Any], *, backend: Backend | None = None
    ) -> Self:
        """The TrainJob in a manifest: its YAML or JSON text, or the same as a dict.

        Raises:
            ValueError: The manifest is wrong; everything that was found stands in the message.
        """
        from mpi_trainer.api.yaml import load

        if isinstance(manifest, str):
            found = load.objects(manifest, "manifest").train_jobs
            if len(found) != 1:
                raise ValueError(f"the manifest holds {len(found)} TrainJobs; give one at a time")
            return cls._of(found[0], backend)
        one = load.train_job(manifest)
        if one.errors or not isinstance(one.value, api.TrainJob):
            raise InvalidJob(one.errors, one.warnings)
        return cls._of(one.value, backend)

    @property
    def spec(self) -> TrainJobSpec:
        """As it was described, or as it was last seen."""
        return self._definition.spec

    @property
    def trainjob_status(self) -> TrainJobStatus:
        """Conditions and counts as its API had them when it was last seen."""
        return self._definition.status

    def validate(self) -> None:
        """Checks the job as `create()` does, as far as that is possible without its runtime.

        Raises:
            ValueError: It makes no sense; everything that was found stands in the message.
        """
        from mpi_trainer.api.validation import trainjob as trainjob_rules

        if errors := tuple(trainjob_rules.errors(trainjob_with_defaults(self._placed()))):
            raise InvalidJob(errors)

    def _placed(self) -> api.TrainJob:
        """The job with its namespace said."""
        meta = replace(self._definition.metadata, namespace=self.namespace)
        return replace(self._definition, metadata=meta)

    def to_dict(self) -> dict[str, Any]:
        """The TrainJob manifest: what runs, and what `kubectl apply` would take."""
        return api.to_wire(replace(self._placed(), status=TrainJobStatus()))

    def to_yaml(self) -> str:
        """The manifest as text, to save, review or submit elsewhere."""
        from mpi_trainer.api.yaml.written import dumped

        return dumped(self.to_dict())

    def _repr_html_(self) -> str:
        from mpi_trainer.sdk.job.html import job_card

        facts = [
            ("Namespace", self._definition.namespace or "the default"),
            ("Runtime", self.spec.runtime_ref.name),
            ("Nodes", str(self._definition.trainer.num_nodes or "as the runtime says")),
        ]
        return job_card(self.name, facts, self._seen, KIND)


def _named(spec: TrainJobSpec, name: str, namespace: str) -> api.TrainJob:
    return api.TrainJob(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def with_program(job: api.TrainJob, text: str, runtime: Runtime) -> api.TrainJob:
    """The job whose ranks run this Python program, as the runtime starts them."""
    from mpi_trainer.api.effective.combine import effective
    from mpi_trainer.sdk.code import functions

    command = functions.command(text, "python", runtime.policy)
    if runtime.policy == MPI:
        merged = effective(job, runtime)
        command = mpi_command(command, merged.nodes * merged.slots)
    trainer = replace(job.trainer, command=tuple(map(literal, command)), args=None)
    return replace(job, spec=replace(job.spec, trainer=trainer))


J = TypeVar("J", bound=TrainJobBase)


class AsyncTrainJob(TrainJobBase, AsyncOperations):
    __doc__ = TrainJobBase.__doc__

    @classmethod
    async def get(
        cls, name: str, namespace: str = "", *, backend: Backend | None = None
    ) -> AsyncTrainJob:
        """The TrainJob of that name.

        Raises:
            JobNotFound: There is none.
        """
        backend = backend or connect()
        place = backend.of_kind(KIND)
        found = await place.get(Key(namespace or backend.namespace, name))
        made = cls._of(api.TrainJob(), backend)
        made._note(found)
        return made

    async def create(self: J) -> J:
        """Submits the job and returns it; it runs from now on, whatever becomes of this program.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
            RuntimeNotFound: Its runtime is not there.
        """
        self.validate()
        job = self._placed()
        if self._program:
            runtime = await self.backend.runtime(job.spec.runtime_ref, self.namespace)
            job = with_program(job, self._program, runtime)
        self._note(await self.backend.create_trainjob(job))
        return self

    async def check(
        self: TrainJobBase,
        timeout: float = 300.0,  # noqa: ASYNC109 - the word that users know
        smoke_run: bool = True,
    ) -> CheckReport:
        """Whether the job can work, before it is created: what reading shows, then a smoke run of
        two nodes with its runtime and settings, which is removed afterwards.

        Args:
            timeout: Seconds after which the smoke run is given up.
            smoke_run: False only reads the job and its runtime.

        Raises:
            RuntimeNotFound: Its runtime is not there.
        """
        from mpi_trainer.sdk.job.check import Target, check

        job = trainjob_with_defaults(self._placed())
        target = Target(job, await self.backend.runtime(job.spec.runtime_ref, self.namespace))
        work = check(self.backend, target, self.namespace, timeout=timeout, smoke_run=smoke_run)
        return await work


class TrainJob(TrainJobBase, Operations):
    __doc__ = TrainJobBase.__doc__

    @classmethod
    def get(cls, name: str, namespace: str = "", *, backend: Backend | None = None) -> Self:
        """The TrainJob of that name.

        Raises:
            JobNotFound: There is none.
        """
        return cls.like(event_loop.run(AsyncTrainJob.get(name, namespace, backend=backend)))

    @classmethod
    def like(cls, job: TrainJobBase) -> Self:
        """The same job, for synchronous use."""
        made = cls._of(job._definition, job._backend)
        made._seen = job._seen
        return made

    def create(self) -> Self:
        """Submits the job and returns it; it runs from now on, whatever becomes of this program.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
            RuntimeNotFound: Its runtime is not there.
        """
        return event_loop.run(AsyncTrainJob.create(self))

    check = blocking(AsyncTrainJob.check)
