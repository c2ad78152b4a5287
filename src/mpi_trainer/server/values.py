"""What the REST API answers, as types: `openapi.py` describes exactly these.

The words are those of the SDK, in the case that Kubernetes uses. A field may be added; one that is
renamed or taken away breaks programs of others, and `tools/openapi.py` refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from mpi_trainer.diagnose.finding import Confidence

State = Literal["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]


class Value(msgspec.Struct, frozen=True, rename="camel"):
    pass


class Progress(Value, frozen=True):
    """How far the program says it is; `metrics` are the last values it printed, such as loss."""

    step: float | None
    total: float | None
    unit: str
    fraction: float | None
    eta_seconds: float | None
    metrics: Mapping[str, float]


class JobItem(Value, frozen=True):
    """A job in a list. `gpus` are those of all its pods; `owner` is who created it, where its
    annotations say so; a job that is `readOnly` is of a kind that this API does not change."""

    kind: str
    namespace: str
    name: str
    state: State
    reason: str
    message: str
    created: datetime
    started: datetime | None
    completed: datetime | None
    workers: int
    slots: int
    implementation: str
    progress: Progress | None
    uid: str
    resource_version: str
    gpus: int
    queue: str
    runtime: str
    owner: str
    suspend: bool
    read_only: bool
    waits_for: str


Counts = Mapping[str, int]


class Facets(Value, frozen=True):
    """How many jobs each value would take, beside the other filters: the most frequent ones."""

    state: Counts
    kind: Counts
    queue: Counts
    runtime: Counts
    owner: Counts
    namespace: Counts


class JobList(Value, frozen=True):
    """A page. `continue` asks for the next one, and is empty on the last; `total` counts all jobs
    that the filters take. `notes` say which jobs are not in the list, and why."""

    items: tuple[JobItem, ...]
    total: int
    continue_: str = msgspec.field(name="continue")
    facets: Facets
    notes: tuple[str, ...]


class Replicas(Value, frozen=True):
    wanted: int
    active: int
    succeeded: int
    failed: int


class Condition(Value, frozen=True):
    type: str
    status: str
    reason: str
    message: str
    last_update_time: datetime | None
    last_transition_time: datetime | None


class Job(Value, frozen=True):
    """A job of any kind. `manifest` is the object as its own API has it."""

    kind: str
    namespace: str
    name: str
    uid: str
    state: State
    reason: str
    message: str
    suspend: bool
    workers: int
    slots: int
    implementation: str
    image: str
    command: tuple[str, ...]
    created: datetime | None
    started: datetime | None
    completed: datetime | None
    deleted: datetime | None
    manifest: Mapping[str, Any]


class Pod(Value, frozen=True):
    """`end` is how it ended, in words; the values after it say the same."""

    name: str
    role: Literal["launcher", "worker"]
    index: int
    phase: str
    ready: bool
    address: str
    node: str
    end: str
    exit_code: int | None
    signal: int | None
    reason: str


class Rank(Value, frozen=True):
    rank: int
    pod: str
    address: str
    end: str
    exit_code: int | None
    signal: int | None
    reason: str


class Attempt(Value, frozen=True):
    """One that has ended, and why; `rank` and `host` are whose fault it was, where known."""

    attempt: int
    reason: str
    message: str
    began: datetime | None
    ended: datetime | None
    rank: int | None
    host: str


class JobStatus(Value, frozen=True):
    """Where a job stands. `waitsFor` is what a job that does not run yet waits for; `missing` says
    how many lines of its output are gone, and why."""

    kind: str
    namespace: str
    name: str
    state: State
    reason: str
    message: str
    started: datetime | None
    completed: datetime | None
    launcher: Replicas
    workers: Replicas
    conditions: tuple[Condition, ...]
    pods: tuple[Pod, ...]
    ranks: tuple[Rank, ...]
    attempts: tuple[Attempt, ...]
    progress: Progress | None
    waits_for: str
    missing: str


class Event(Value, frozen=True):
    time: datetime
    type: str
    reason: str
    message: str


class EventList(Value, frozen=True):
    """Oldest first."""

    items: tuple[Event, ...]


class LogLine(Value, frozen=True):
    """`lost` counts lines before this one that are gone; `notes` are for the reader, before it."""

    time: datetime
    pod: str
    stream: Literal["stdout", "stderr"]
    rank: int | None
    text: str
    attempt: int
    lost: int
    notes: tuple[str, ...]


class LogLines(Value, frozen=True):
    """Oldest first. `cut` says that lines before these, or the ends of long ones, were left out."""

    items: tuple[LogLine, ...]
    cut: bool


class Finding(Value, frozen=True):
    """Why a job failed. `line` is the one that shows it; `remedy` is what to do."""

    cause: str
    confidence: Confidence
    title: str
    remedy: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    line: str
    followed: tuple[str, ...]
    instead: str


class Findings(Value, frozen=True):
    """The most likely cause first; nothing where the job shows no failure."""

    items: tuple[Finding, ...]


class Gpu(Value, frozen=True):
    gpu: str
    model: str
    percent: float | None
    memory_bytes: int | None
    memory_total_bytes: int | None


class PodUsage(Value, frozen=True):
    pod: str
    cpus: float | None
    memory_bytes: int | None
    peak_memory_bytes: int | None
    gpus: tuple[Gpu, ...]


class Metrics(Value, frozen=True):
    """What a job says of itself and uses; `notes` say what is not known, why, and what to do."""

    metrics: Mapping[str, float]
    progress: Progress | None
    seconds: float | None
    cpus: float | None
    memory_bytes: int | None
    peak_memory_bytes: int | None
    pods: tuple[PodUsage, ...]
    source: str
    notes: tuple[str, ...]


class MetricSeries(Value, frozen=True):
    """Each point is a time in epoch seconds and a value. `rank` is null where it is not known or
    the pod runs several; values that the program printed have no unit."""

    name: str
    pod: str
    rank: int | None
    unit: str
    points: tuple[tuple[float, float], ...]


class MetricsHistory(Value, frozen=True):
    """`source` says where the series come from; `notes` say what is missing, and why."""

    series: tuple[MetricSeries, ...]
    source: str
    notes: tuple[str, ...]


class Project(Value, frozen=True):
    name: str
    display_name: str


class NamespaceList(Value, frozen=True):
    """Those that the caller can see; `default` is where a job goes that names none. `projects` are
    the same with the names that people gave them, which may be empty."""

    items: tuple[str, ...]
    default: str
    projects: tuple[Project, ...]


class Permission(Value, frozen=True):
    """`reason` says why something is not allowed, and what to do."""

    action: str
    allowed: bool
    reason: str


class PermissionList(Value, frozen=True):
    """What the caller may do with jobs of a namespace. Whether the cluster serves that kind of
    jobs is another question."""

    items: tuple[Permission, ...]


class ProjectUse(Value, frozen=True):
    """What the jobs of one namespace hold now, and held within the time."""

    namespace: str
    jobs: int
    running: int
    waiting: int
    gpus_in_use: int
    gpu_hours: float


class Overview(Value, frozen=True):
    """Jobs at a glance. `total`, `states`, `gpusInUse` and `cpusInUse` are of now; the rest counts
    what ended, or ran, within the last `hours`. `waiting` are the longest waiting first, the other
    lists newest first; `projects` those that hold most first, and none where one was asked for.
    `notes` say what is not known, and why."""

    hours: int
    total: int
    states: Counts
    succeeded: int
    failed: int
    success_rate: float | None
    average_seconds: float | None
    gpus_in_use: int
    cpus_in_use: float | None
    gpu_hours: float
    running: tuple[JobItem, ...]
    waiting: tuple[JobItem, ...]
    failed_lately: tuple[JobItem, ...]
    projects: tuple[ProjectUse, ...]
    notes: tuple[str, ...]


class About(Value, frozen=True):
    """This server, and who the caller is to it. `backend` is `local`, or the cluster's address.
    `grafana` is the address of a dashboard by `var-namespace` and `var-mpijob`, or empty."""

    version: str
    backend: str
    user: str
    grafana: str


class Rendered(Value, frozen=True):
    """The objects that a controller would make, in their order; Secrets without their keys."""

    items: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...]


class DryRun(Value, frozen=True):
    """What would be refused, a sentence for each thing to mend; nothing is made."""

    accepted: bool
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


class Equivalents(Value, frozen=True):
    """One job as a command line for a POSIX shell, as a program of the SDK, and as YAML. Each makes
    the same job; values of its variables stand in all of them."""

    cli: str
    sdk: str
    yaml: str


class Change(Value, frozen=True, omit_defaults=True):
    """A side that has no value there is left out."""

    field: str
    cluster: Any = msgspec.UNSET
    file: Any = msgspec.UNSET


class Difference(Value, frozen=True):
    kind: str
    name: str
    state: str
    changes: tuple[Change, ...]


class Differences(Value, frozen=True):
    """Empty where applying the file would change nothing."""

    items: tuple[Difference, ...]
    warnings: tuple[str, ...]


class TestStep(Value, frozen=True):
    """One thing that a test tried; `passed` is null where it was not tried, and why in `detail`."""

    name: str
    passed: bool | None
    detail: str
    remedy: str


class TestReport(Value, frozen=True):
    """Whether a runtime or a job works. `text` is what `odh runtime test` says. Latency and
    bandwidth are those between the two pods, one way; null where they were not measured."""

    passed: bool
    summary: str
    steps: tuple[TestStep, ...]
    text: str
    seconds: float
    latency_seconds: float | None
    bytes_per_second: float | None


class WrongField(Value, frozen=True):
    """One thing that is wrong: where, what, and what to do. `position` is a place in the body."""

    field: str
    message: str
    remedy: str = ""
    position: str = ""


class Problem(Value, frozen=True):
    """RFC 9457. `detail` and `hint` are what `odh` says of the same mistake."""

    type: str
    title: str
    status: int
    detail: str
    hint: str = ""
    errors: tuple[WrongField, ...] = ()


class CloneRequest(Value, frozen=True, forbid_unknown_fields=True):
    """A copy of a job under another name, with changes; what is not given stays as it is."""

    name: str
    workers: int | None = None
    slots: int | None = None
    image: str | None = None
    command: tuple[str, ...] | None = None
    env: Mapping[str, str] = {}
