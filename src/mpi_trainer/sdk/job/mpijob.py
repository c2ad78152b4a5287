"""MPIJobs: `AsyncMPIJob` with `await`, and `MPIJob`, made from it, without.

`Job` is what both are: made from a few words, a function, a spec or a manifest, and never talking
to anybody. Parts that only some programs need are imported where they are used: importing the SDK
must be quick.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds import mpijob as api
from mpi_trainer.api.kinds.mpijob import OPEN_MPI, RunPolicy
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.check.report import CheckReport
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.sdk import event_loop
from mpi_trainer.sdk.backends.backend import Backend, JobView, Key
from mpi_trainer.sdk.client.connect import connect
from mpi_trainer.sdk.errors import JobError
from mpi_trainer.sdk.job.handle import AsyncOperations, JobHandle, Operations
from mpi_trainer.sdk.job.new import LONGEST_NAME, NewJob
from mpi_trainer.sdk.job.specs import (
    LOCAL_IMAGE,
    MPIJobSpec,
    ResourceRequirements,
    VolumeMount,
    named_mounts,
    with_volume,
)
from mpi_trainer.sdk.job.state import JobState, job_state
from mpi_trainer.sdk.synchronous import blocking


class Job(JobHandle):
    """An MPI training job: described here, run by `create()`.

    Args:
        name: Its name; lower-case letters, digits and `-`.
        namespace: The namespace (project) it belongs to; by default the connection's own.
        workers: How many worker pods.
        image: The container image. On this machine jobs run in its own Python environment.
        command: What every rank runs, as a list of words. A command that is an MPI launcher
            itself (`mpirun …`) is run once, as it is. Without one, the image's own is run.
        resources: What each worker needs.
        launcher_resources: What the launcher needs, which only starts ranks; by default nothing, or
            a little where the namespace's quota asks for it.
        volume_mounts: Volumes that launcher and workers see. A dict such as `{"name":
            "training-data", "mountPath": "/data"}` names a PersistentVolumeClaim or a data
            connection of the namespace; on this machine the directory that
            `MPI_TRAINER_CLAIMS=training-data=/path` gives for it.
        env: Variables for every rank.
        node_selector: Labels that the nodes must have.
        slots: Ranks on each worker; by default its GPUs, or 1.
        mpi: `OpenMPI`, `Intel` or `MPICH`.
        run_policy: Attempts, time limits, queue; by default a job that fails is not tried again.
        workdir: A folder here whose content is the job's working directory, wherever it runs.
            It travels with the job; what `.odhignore` in it names does not.
        backend: Where it runs; by default as `connect()` finds.
    """

    _definition: api.MPIJob | JobView
    """a JobView where it is of another kind"""
    _workdir: str
    _volumes: frozenset[str]
    """those that it names without saying what they are"""

    def __init__(  # noqa: PLR0913 - a job has this many sides, and all but its name have defaults
        self,
        name: str,
        namespace: str = "",
        workers: int = 2,
        image: str = LOCAL_IMAGE,
        command: Sequence[str] = (),
        resources: ResourceRequirements | None = None,
        volume_mounts: Sequence[VolumeMount | Mapping[str, Any]] = (),
        env: Mapping[str, str] | None = None,
        node_selector: Mapping[str, str] | None = None,
        *,
        launcher_resources: ResourceRequirements | None = None,
        slots: int | None = None,
        mpi: str = OPEN_MPI,
        run_policy: RunPolicy | None = None,
        workdir: str | None = None,
        backend: Backend | None = None,
    ) -> None:
        if isinstance(command, str):
            raise ValueError(
                f"command must be a list of strings, not the string {command!r}; write for example "
                f"{command.split()!r}"
            )
        mounts = named_mounts(volume_mounts)
        new = NewJob(
            name=name,
            command=tuple(command),
            namespace=namespace,
            workers=workers,
            slots=slots,
            implementation=_implementation(mpi),
            image=image,
            env=tuple((env or {}).items()),
            resources=resources or ResourceRequirements(),
            launcher_resources=launcher_resources or ResourceRequirements(),
            volumes=mounts,
            node_selector=tuple((node_selector or {}).items()),
            run_policy=run_policy or RunPolicy(),
        )
        self._hold(new.mpijob(), backend)
        self._workdir = workdir or ""
        self._volumes = frozenset(mount.name for mount in mounts if mount.name)

    def _hold(self, definition: api.MPIJob | JobView, backend: Backend | None) -> None:
        self._definition = definition
        self._backend = backend
        self._seen = None
        self._workdir = ""
        self._volumes = frozenset()

    def _note(self, job: JobView) -> JobState:
        """Takes the job as its backend has it now."""
        self._definition = _definition_of(job)
        self._seen = job_state(job)
        return self._seen

    @classmethod
    def of(cls, definition: api.MPIJob, backend: Backend | None = None) -> Self:
        """A job as the API has it, such as one from a file."""
        made = cls.__new__(cls)
        made._hold(definition, backend)
        return made

    @classmethod
    def _viewed(cls, job: JobView, backend: Backend) -> Self:
        """A job as a backend has it now."""
        made = cls.__new__(cls)
        made._hold(job, backend)
        made._note(job)
        return made

    @classmethod
    def from_function(  # noqa: PLR0913 - the same sides as a job from a command
        cls,
        train: Callable[..., object],
        *,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        name: str | None = None,
        namespace: str = "",
        workers: int = 2,
        slots: int | None = None,
        image: str = LOCAL_IMAGE,
        resources: ResourceRequirements | None = None,
        launcher_resources: ResourceRequirements | None = None,
        volume_mounts: Sequence[VolumeMount | Mapping[str, Any]] = (),
        env: Mapping[str, str] | None = None,
        node_selector: Mapping[str, str] | None = None,
        mpi: str = OPEN_MPI,
        run_policy: RunPolicy | None = None,
        workdir: str | None = None,
        backend: Backend | None = None,
    ) -> Self:
        """A job whose every rank calls the function `train(*args, **kwargs)`.

        The function's source travels in the job's command, as text: imports belong inside the
        function, other values come as arguments, which have to be JSON (a tuple arrives as a
        list). Modules of your own come with `workdir`. Nothing is returned: print results, log
        them, or write files. The image needs Python and mpi4py; one rank's exception ends the
        whole job.

        Raises:
            NotShippable: The function needs something that cannot travel; names it and its line.
        """
        from mpi_trainer.sdk.code import functions

        text = functions.program(train, args, kwargs or {})
        python = sys.executable if image == LOCAL_IMAGE else "python"
        return cls(
            name=name or new_name(train.__name__),
            command=functions.command(text, python),
            namespace=namespace,
            workers=workers,
            image=image,
            resources=resources,
            launcher_resources=launcher_resources,
            volume_mounts=volume_mounts,
            env=env,
            node_selector=node_selector,
            slots=slots,
            mpi=mpi,
            run_policy=run_policy,
            workdir=workdir,
            backend=backend,
        )

    @classmethod
    def from_spec(
        cls,
        name: str,
        spec: MPIJobSpec,
        namespace: str = "",
        *,
        backend: Backend | None = None,
    ) -> Self:
        """A job described role by role."""
        return cls.of(spec.manifest(name, namespace), backend)

    @classmethod
    def from_manifest(
        cls, manifest: str | Mapping[str, Any], *, backend: Backend | None = None
    ) -> Self:
        """The MPIJob in a manifest: its YAML or JSON text, or the same as a dict.

        Raises:
            ValueError: The manifest is wrong; everything that was found stands in the message.
        """
        from mpi_trainer.api.yaml import load

        if isinstance(manifest, str):
            found = load.jobs(manifest, "manifest").jobs
            if len(found) != 1:
                raise ValueError(f"the manifest holds {len(found)} jobs; give one at a time")
            definition = found[0]
        else:
            one = load.job(manifest)
            if one.errors or not isinstance(one.value, api.MPIJob):
                raise InvalidJob(one.errors, one.warnings)
            definition = one.value
        return cls.of(definition, backend)

    @property
    def workers(self) -> int:
        return self._definition.workers

    @property
    def slots(self) -> int:
        """Ranks on each worker."""
        return self._definition.slots

    def _mpijob(self) -> api.MPIJob:
        if isinstance(self._definition, JobView):
            raise JobError(
                f"job {self.name} is a {self._definition.kind} and cannot be submitted as an MPIJob"
            )
        return self._definition

    def _placed(self) -> api.MPIJob:
        """The job with its namespace said."""
        job = self._mpijob()
        meta = msgspec.structs.replace(job.metadata, namespace=self.namespace)
        return msgspec.structs.replace(job, metadata=meta)

    async def _with_volumes(self) -> api.MPIJob:
        """The job with the sources of volumes that have only a name."""
        job = self._placed()
        for name in sorted(self._volumes):
            job = with_volume(job, name, await self.backend.volume(name, self.namespace))
        return job

    def validate(self) -> None:
        """Checks the job as `create()` does.

        Raises:
            ValueError: It makes no sense; everything that was found stands in the message.
        """
        from mpi_trainer.api.validation import mpijob as mpijob_rules

        if errors := mpijob_rules.errors(mpijob_with_defaults(self._placed())):
            raise InvalidJob(errors)

    def to_dict(self) -> dict[str, Any]:
        """The MPIJob manifest: what runs, and what `kubectl apply` would take."""
        if isinstance(self._definition, JobView):
            return {k: v for k, v in self._definition.manifest.items() if k != "status"}
        definition = msgspec.structs.replace(self._placed(), status=api.MPIJobStatus())
        return api.to_wire(definition)

    def to_yaml(self) -> str:
        """The manifest as text, to save, review or submit elsewhere."""
        from mpi_trainer.api.yaml.written import dumped

        return dumped(self.to_dict())

    def _repr_html_(self) -> str:
        from mpi_trainer.sdk.job.html import job_card

        given = self._definition
        mpi = given.implementation if isinstance(given, JobView) else given.spec.mpi_implementation
        ranks = f"{self.workers * self.slots} ({self.workers} workers x {self.slots} slots)"
        facts = [("Namespace", self._definition.namespace or "the default"), ("Ranks", ranks)]
        facts.append(("MPI", mpi or OPEN_MPI))
        return job_card(self.name, facts, self._seen)


def _definition_of(job: JobView) -> api.MPIJob | JobView:
    return decode(api.MPIJob, job.manifest).value if job.kind == api.KIND else job


def _implementation(name: str) -> str:
    """The implementation as the API spells it; upper and lower case do not matter to people."""
    known = [impl.name for impl in REGISTRY]
    found = next((k for k in known if k.lower() == name.lower()), None)
    if found is None:
        meant = nearest(name, known)
        remedy = f"did you mean `{meant}`?" if meant else f"choose one of {', '.join(known)}"
        raise ValueError(f"mpi: there is no MPI implementation `{name}`; {remedy}")
    return found


def new_name(function: str) -> str:
    """A new name every time, so that a notebook cell can be run again."""
    base = re.sub(r"[^a-z0-9]+", "-", function.lower()).strip("-")[:LONGEST_NAME].rstrip("-")
    return f"{base if base[:1].isalpha() else 'job'}-{os.urandom(3).hex()}"


J = TypeVar("J", bound=Job)


class AsyncMPIJob(Job, AsyncOperations):
    __doc__ = Job.__doc__

    @classmethod
    async def get(
        cls, name: str, namespace: str = "", *, backend: Backend | None = None
    ) -> AsyncMPIJob:
        """The job of that name.

        Raises:
            JobNotFound: There is none.
        """
        backend = backend or connect()
        found = await backend.get(Key(namespace or backend.namespace, name))
        return cls._viewed(found, backend)

    async def create(self: J) -> J:
        """Submits the job and returns it; it runs from now on, whatever becomes of this program.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        self.validate()
        self._note(await self.backend.create(await self._with_volumes(), self._workdir))
        return self

    async def check(
        self: Job,
        timeout: float = 300.0,  # noqa: ASYNC109 - the word that users know
        smoke_run: bool = True,
    ) -> CheckReport:
        """Whether the job can work, before it is created: what reading shows, then a smoke run of
        two pods with the job's own image and settings, which is removed afterwards.

        Args:
            timeout: Seconds after which the smoke run is given up.
            smoke_run: False only reads the job.
        """
        from mpi_trainer.sdk.job.check import Target, check

        target = Target(mpijob_with_defaults(await self._with_volumes()), filled=True)
        work = check(self.backend, target, self.namespace, timeout=timeout, smoke_run=smoke_run)
        return await work


class MPIJob(Job, Operations):
    __doc__ = Job.__doc__

    @classmethod
    def get(cls, name: str, namespace: str = "", *, backend: Backend | None = None) -> Self:
        """The job of that name.

        Raises:
            JobNotFound: There is none.
        """
        return cls.like(event_loop.run(AsyncMPIJob.get(name, namespace, backend=backend)))

    @classmethod
    def like(cls, job: Job) -> Self:
        """The same job, for synchronous use."""
        made = cls.__new__(cls)
        made._hold(job._definition, job._backend)
        made._seen = job._seen
        return made

    def create(self) -> Self:
        """Submits the job and returns it; it runs from now on, whatever becomes of this program.

        Raises:
            ValueError: The job makes no sense, or (JobExists) its name is taken.
        """
        return event_loop.run(AsyncMPIJob.create(self))

    check = blocking(AsyncMPIJob.check)
