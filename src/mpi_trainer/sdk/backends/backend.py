"""What every place that runs jobs can do, and what it says of them: this machine, or a cluster.

Interfaces are written against this protocol alone and do not ask which backend
they have. Everything is asynchronous; iterators end by themselves when there is nothing more to
come. Errors are those of `sdk/errors.py`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.conditions import Conditions
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.decide.history import History
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.errors import JobError

if TYPE_CHECKING:
    from mpi_trainer.api.kinds.runtime import Runtime
    from mpi_trainer.api.kinds.trainjob import RuntimeRef, TrainJob
    from mpi_trainer.api.yaml.load import JobFile
    from mpi_trainer.plan.comparison import Difference
    from mpi_trainer.sdk.backends.live import LiveView
    from mpi_trainer.sdk.backends.permissions import Permission
    from mpi_trainer.sdk.backends.usage import JobUsage
    from mpi_trainer.sdk.code.bundle import Bundle


class Key(msgspec.Struct, frozen=True):
    """Which job."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def typed(self) -> str:
        """As it stands in a command line, for hints that can be copied."""
        return self.name if self.namespace == "default" else f"{self.name} -n {self.namespace}"


class ReplicaCount(msgspec.Struct, frozen=True):
    """Pods of one role: how many were asked for, and how they are."""

    wanted: int
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class JobCounts(msgspec.Struct, frozen=True):
    """`slots` are ranks on each worker."""

    launcher: ReplicaCount = ReplicaCount(1)
    workers: ReplicaCount = ReplicaCount(0)
    slots: int = 1


class JobTimes(msgspec.Struct, frozen=True):
    """`deleted` is when its deletion was asked for."""

    created: datetime | None = None
    started: datetime | None = None
    completed: datetime | None = None
    deleted: datetime | None = None


class JobView(msgspec.Struct, frozen=True):
    """A job of any kind as every interface sees it.

    `state` is one of the six words that all kinds share, and `conditions` use the same words;
    `manifest` is the job as its own API has it.
    """

    kind: str
    key: Key
    state: str
    counts: JobCounts
    times: JobTimes
    manifest: Mapping[str, Any]
    conditions: Conditions = ()
    suspend: bool = False
    """whether its suspension is asked for; `state` follows"""
    implementation: str = ""
    image: str = ""
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def workers(self) -> int:
        return self.counts.workers.wanted

    @property
    def slots(self) -> int:
        return self.counts.slots

    @property
    def uid(self) -> str:
        return str(self._metadata.get("uid", ""))

    @property
    def labels(self) -> Mapping[str, str]:
        return self._metadata.get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self._metadata.get("annotations") or {}

    @property
    def finished(self) -> bool:
        return conditions.finished(self.conditions)

    @property
    def reason(self) -> str:
        current = conditions.find(self.conditions, self.state)
        return current.reason if current else ""

    @property
    def message(self) -> str:
        current = conditions.find(self.conditions, self.state)
        return current.message if current else ""

    @property
    def last_reconcile_time(self) -> datetime | None:
        """When its controller last looked at it, where its API says so."""
        text = (self.manifest.get("status") or {}).get("lastReconcileTime")
        try:
            return datetime.fromisoformat(text) if isinstance(text, str) else None
        except ValueError:
            return None

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return self.manifest.get("metadata") or {}


class JobSummary(msgspec.Struct, frozen=True):
    """A job in a list: cheap to get, even for a thousand of them."""

    key: Key
    state: str
    created: datetime
    reason: str = ""
    message: str = ""
    started: datetime | None = None
    completed: datetime | None = None
    workers: int = 0
    slots: int = 0
    implementation: str = ""
    progress: Progress | None = None
    kind: str = "MPIJob"
    manifest: Mapping[str, Any] | None = None
    """the whole object, only where `JobQuery.manifests` asked for it"""
    uid: str = ""
    resource_version: str = ""
    """of the object; another one does not mean that a list shows anything else"""
    gpus: int = 0
    """of all its pods; of a TrainJob without what only its runtime says, where that is not known"""
    queue: str = ""
    runtime: str = ""
    """what a TrainJob names"""
    owner: str = ""
    """who created it, where its annotations say so"""
    suspend: bool = False
    """whether its suspension is asked for"""
    waits_for: str = ""


class JobQuery(msgspec.Struct, frozen=True):
    """Which jobs of a list, and how much of each. `labels` is a label selector as kubectl writes
    it. `progress` asks for it also where it costs requests of its own."""

    labels: str = ""
    manifests: bool = False
    progress: bool = False


ALL_JOBS: Final = JobQuery()


class JobPage(msgspec.Struct, frozen=True):
    """A part of a list; `token` asks for the next one, and is empty where this is the last."""

    jobs: tuple[JobSummary, ...]
    token: str = ""


class JobChange(msgspec.Struct, frozen=True):
    """A job as it is now, or as it was last where it is `deleted`."""

    job: JobSummary
    deleted: bool = False


class Project(msgspec.Struct, frozen=True):
    """A namespace, and what OpenShift's pages call it."""

    name: str
    display_name: str = ""


class QueueResource(msgspec.Struct, frozen=True):
    """What a ClusterQueue has of a resource in one flavor, and what admitted jobs hold of it."""

    flavor: str
    resource: str
    nominal: str
    used: str


class WaitingJob(msgspec.Struct, frozen=True):
    """A job's place in its queue, and among all jobs of the ClusterQueue, counted from 1."""

    kind: str
    name: str
    position: int
    cluster_position: int
    priority: int = 0


class QuotaInfo(msgspec.Struct, frozen=True):
    """A limit of a namespace, such as of `requests.nvidia.com/gpu`, and how much of it is used."""

    name: str
    resource: str
    hard: str
    used: str


class QueueInfo(msgspec.Struct, frozen=True):
    """A queue that jobs of its namespace may name; `pending` and `admitted` count its jobs.

    The last three are None where the caller may not read them or the cluster does not say them:
    what the ClusterQueue has, how many jobs wait for it, and who waits here, first come first.
    """

    namespace: str
    name: str
    cluster_queue: str = ""
    pending: int = 0
    admitted: int = 0
    resources: tuple[QueueResource, ...] | None = None
    cluster_pending: int | None = None
    waiting: tuple[WaitingJob, ...] | None = None


class PodInfo(msgspec.Struct, frozen=True):
    name: str
    role: Literal["launcher", "worker"]
    index: int
    phase: str
    ready: bool
    address: str = ""
    node: str = ""
    pid: int = 0
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    end: str = ""
    """how it ended, in words; the next three say the same as values"""
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""


class RankInfo(msgspec.Struct, frozen=True):
    """`end` is how it ended, in words; the values after it say the same."""

    rank: int
    pod: str
    address: str
    pid: int
    end: str
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""


class EventInfo(msgspec.Struct, frozen=True):
    time: datetime
    type: str
    reason: str
    message: str


class LogLine(msgspec.Struct, frozen=True):
    """One line; `rank` where it is known. `lost` counts lines before this one that are gone;
    `notes` are for the reader, before it: that an attempt begins, or that lines which nobody could
    count are missing, and why."""

    time: datetime
    pod: str
    stream: Literal["stdout", "stderr"]
    rank: int | None
    text: str
    attempt: int = 1
    lost: int = 0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As `odh` prints it: the rank, where it is known, and the text."""
        return self.text if self.rank is None else f"[{self.rank}] {self.text}"


class LogQuery(msgspec.Struct, frozen=True):
    """Which lines. Launcher and ranks by default; a worker's own lines (its sshd), those of the
    pod of a name or of all pods on request. Of every attempt, or of one. `level` is the least one
    that is taken (`diagnose.log_levels`). `held`: bytes of lines without an end that are held;
    beyond that they are given in parts. `room`: characters that the lines of a `tail` may have
    together on a cluster; None for any number."""

    rank: int | None = None
    worker: int | None = None
    launcher: bool = False
    follow: bool = False
    since: datetime | None = None
    tail: int | None = None
    grep: str | None = None
    attempt: int | None = None
    until: datetime | None = None
    level: str = ""
    pod: str = ""
    all_pods: bool = False
    held: int = bounds.HELD
    room: int | None = None

    def pattern(self) -> re.Pattern[str] | None:
        """What `grep` looks for; a JobError where it is not a regular expression."""
        try:
            return re.compile(self.grep) if self.grep else None
        except re.error as error:
            raise JobError(
                f"{self.grep!r} is not a regular expression: {error}", "Escape special characters."
            ) from error


class JobDetails(msgspec.Struct, frozen=True):
    """A job with everything that is known of it."""

    job: JobView
    pods: tuple[PodInfo, ...] = ()
    ranks: tuple[RankInfo, ...] = ()
    events: tuple[EventInfo, ...] = ()
    progress: Progress | None = None
    suspicion: str = ""
    """where its ranks are, of a job that seems to be stuck, as far as its log says so"""
    waits_for: str = ""
    attempts: History = ()
    """those that have ended, oldest first"""
    missing: str = ""
    """how many lines of its output are gone, and why; empty where none is"""


class Backend(Protocol):
    @property
    def name(self) -> str:
        """`local`, or the cluster's."""

    @property
    def namespace(self) -> str:
        """Where a job goes that names no namespace."""

    @property
    def live(self) -> LiveView:
        """What it tells while somebody looks."""

    def of_kind(self, kind: str) -> Backend:
        """The same, where only jobs of this kind are seen; whatever else has the name is not."""

    async def create(self, job: MPIJob, workdir: str = "") -> JobView:
        """Submits; the job as stored. JobExists where the name is taken. What the folder `workdir`
        holds now is the job's working directory."""

    async def create_with_code(self, job: MPIJob, packed: Bundle) -> JobView:
        """Submits a job whose working directory is what the bundle holds; it goes with the job."""

    async def create_trainjob(self, job: TrainJob) -> JobView:
        """Submits a TrainJob, whose runtime should be there already."""

    async def copy(self, job: MPIJob, original: Key) -> JobView:
        """Submits a copy of a job that is there, with whatever was shipped with that."""

    async def get(self, key: Key) -> JobView: ...

    async def details(self, key: Key) -> JobDetails: ...

    async def summary(self, key: Key) -> JobSummary:
        """What a table shows of one job."""

    async def list(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        """Newest first; of every namespace where none is named."""

    async def list_page(
        self, namespace: str | None = None, limit: int = 500, token: str = ""
    ) -> JobPage:
        """At most `limit` jobs, kind by kind in the order of their names; fewer do not mean that
        it is the last page. JobError where the token is no longer good: begin again."""

    def watch_jobs(self, namespace: str | None = None) -> AsyncGenerator[JobChange, None]:
        """Every job now, then every change and deletion; never ends by itself."""

    def watch(self, key: Key) -> AsyncGenerator[JobView, None]:
        """The job now and after every change of its status; ends when it has ended or is gone."""

    def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]: ...

    async def suspend(self, key: Key, seen: JobView | None = None) -> JobView:
        """JobChanged where the job is no longer as `seen`, here and in the next three."""

    async def resume(self, key: Key, seen: JobView | None = None) -> JobView: ...

    async def restart(self, key: Key, seen: JobView | None = None) -> JobView:
        """A finished job anew under its name; a running one by suspending and resuming it."""

    async def delete(self, key: Key, seen: JobView | None = None) -> None:
        """Returns when nothing of the job is left."""

    async def refusals(self, job: MPIJob | TrainJob) -> Sequence[str]:
        """What the job would be refused for, a sentence for each thing; nothing is made."""

    async def differences(self, file: JobFile, namespace: str) -> Sequence[Difference]:
        """What applying the file would change; `namespace` is for what names none. JobError where
        there is no cluster."""

    async def user(self) -> str:
        """Who the caller is, as the backend knows them."""

    async def run_in(self, key: Key, pod: str, command: Sequence[str]) -> int:
        """Runs a command inside a pod, in the directory that the job works in, with the caller's
        terminal; its exit code."""

    async def fetch(self, key: Key, path: str, destination: str) -> None:
        """Copies a file or directory out of the job, also of one that has ended."""

    async def rank_pods(self, key: Key) -> dict[int, str]:
        """The pod of every rank, by rank; of a job that runs, only by entering its pods."""

    async def stacks(self, key: Key) -> dict[int, str]:
        """A stack dump of every rank that runs, by rank."""

    async def usage(
        self, keys: Sequence[Key], gpu_metrics: Sequence[str] | None = None
    ) -> Mapping[Key, JobUsage]:
        """What the pods of jobs use now; a job that is not there is left out. `gpu_metrics`:
        where pages of a DCGM exporter are, in place of those that the environment names."""

    async def cpus_in_use(self, namespace: str | None = None) -> float | None:
        """Busy cores of the pods of all jobs, of every namespace where none is named; None where
        nobody can tell without entering the pods."""

    async def prune(self, namespace: str | None, older_than_seconds: float) -> Sequence[Key]:
        """Deletes jobs that ended at least so long ago; which."""

    async def runtimes(self, namespace: str) -> Sequence[Runtime]:
        """Those that a TrainJob of this namespace can name, in the order of their names; one of
        the namespace before a common one of the same name."""

    async def runtime(self, ref: RuntimeRef, namespace: str) -> Runtime:
        """The one that a TrainJob of this namespace would get. RuntimeNotFound where there is
        none; K8sApiException where runtimes are not served, or not for the caller."""

    async def namespaces(self) -> Sequence[str]:
        """Those that the caller can see; at least the one where a job goes that names none."""

    async def projects(self) -> Sequence[Project]:
        """The same, with the names that people gave them."""

    async def permissions(self, namespace: str) -> Sequence[Permission]:
        """What the caller may do there, action by action; a namespace need not be there for it."""

    async def enforces_restricted(self, namespace: str) -> bool:
        """Whether the namespace refuses pods that do not say all that Pod Security's restricted
        profile demands. No where the caller may not see that, or something fills it in."""

    async def volume(self, name: str, namespace: str) -> Mapping[str, Any]:
        """The source of a pod's volume that has only a name: a PersistentVolumeClaim, else a data
        connection of the namespace. VolumeNotFound where it is neither."""

    async def queues(self, namespace: str) -> Sequence[QueueInfo]:
        """Those that jobs of this namespace can name; nothing where jobs do not queue."""

    async def quotas(self, namespace: str) -> Sequence[QuotaInfo]:
        """What ResourceQuotas of the namespace allow; nothing where it has none."""
