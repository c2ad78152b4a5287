# Made from proto/mpitrainer/v1/mpijobs.proto by `make docs` (tools/protos.py); not to be edited.
import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_CREATED: _ClassVar[JobState]
    JOB_STATE_RUNNING: _ClassVar[JobState]
    JOB_STATE_RESTARTING: _ClassVar[JobState]
    JOB_STATE_SUSPENDED: _ClassVar[JobState]
    JOB_STATE_SUCCEEDED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_CREATED: JobState
JOB_STATE_RUNNING: JobState
JOB_STATE_RESTARTING: JobState
JOB_STATE_SUSPENDED: JobState
JOB_STATE_SUCCEEDED: JobState
JOB_STATE_FAILED: JobState

class CreateMPIJobRequest(_message.Message):
    __slots__ = ("namespace", "manifest_json", "manifest_yaml")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_JSON_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_YAML_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    manifest_json: str
    manifest_yaml: str
    def __init__(self, namespace: _Optional[str] = ..., manifest_json: _Optional[str] = ..., manifest_yaml: _Optional[str] = ...) -> None: ...

class GetMPIJobRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class MPIJob(_message.Message):
    __slots__ = ("namespace", "name", "uid", "state", "reason", "message", "suspend", "workers", "slots", "implementation", "image", "command", "created", "started", "completed", "deleted", "manifest_json", "etag")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    IMPLEMENTATION_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_JSON_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    state: JobState
    reason: str
    message: str
    suspend: bool
    workers: int
    slots: int
    implementation: str
    image: str
    command: _containers.RepeatedScalarFieldContainer[str]
    created: _timestamp_pb2.Timestamp
    started: _timestamp_pb2.Timestamp
    completed: _timestamp_pb2.Timestamp
    deleted: _timestamp_pb2.Timestamp
    manifest_json: str
    etag: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., suspend: _Optional[bool] = ..., workers: _Optional[int] = ..., slots: _Optional[int] = ..., implementation: _Optional[str] = ..., image: _Optional[str] = ..., command: _Optional[_Iterable[str]] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deleted: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., manifest_json: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class ListMPIJobsRequest(_message.Message):
    __slots__ = ("namespace", "state", "name", "label_selector", "implementation", "sort_by", "order", "limit", "continue_token", "queue", "owner")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    IMPLEMENTATION_FIELD_NUMBER: _ClassVar[int]
    SORT_BY_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    state: _containers.RepeatedScalarFieldContainer[JobState]
    name: str
    label_selector: str
    implementation: str
    sort_by: str
    order: str
    limit: int
    continue_token: str
    queue: _containers.RepeatedScalarFieldContainer[str]
    owner: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., state: _Optional[_Iterable[_Union[JobState, str]]] = ..., name: _Optional[str] = ..., label_selector: _Optional[str] = ..., implementation: _Optional[str] = ..., sort_by: _Optional[str] = ..., order: _Optional[str] = ..., limit: _Optional[int] = ..., continue_token: _Optional[str] = ..., queue: _Optional[_Iterable[str]] = ..., owner: _Optional[_Iterable[str]] = ...) -> None: ...

class ListMPIJobsResponse(_message.Message):
    __slots__ = ("items", "total", "continue_token", "facets", "notes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FACETS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[MPIJobItem]
    total: int
    continue_token: str
    facets: Facets
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[_Union[MPIJobItem, _Mapping]]] = ..., total: _Optional[int] = ..., continue_token: _Optional[str] = ..., facets: _Optional[_Union[Facets, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class Facets(_message.Message):
    __slots__ = ("state", "queue", "owner", "namespace")
    class StateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class QueueEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class OwnerEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class NamespaceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STATE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    state: _containers.ScalarMap[str, int]
    queue: _containers.ScalarMap[str, int]
    owner: _containers.ScalarMap[str, int]
    namespace: _containers.ScalarMap[str, int]
    def __init__(self, state: _Optional[_Mapping[str, int]] = ..., queue: _Optional[_Mapping[str, int]] = ..., owner: _Optional[_Mapping[str, int]] = ..., namespace: _Optional[_Mapping[str, int]] = ...) -> None: ...

class MPIJobItem(_message.Message):
    __slots__ = ("namespace", "name", "state", "reason", "message", "created", "started", "completed", "workers", "slots", "implementation", "progress", "uid", "resource_version", "gpus", "queue", "owner", "suspend", "waits_for")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    IMPLEMENTATION_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VERSION_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    state: JobState
    reason: str
    message: str
    created: _timestamp_pb2.Timestamp
    started: _timestamp_pb2.Timestamp
    completed: _timestamp_pb2.Timestamp
    workers: int
    slots: int
    implementation: str
    progress: Progress
    uid: str
    resource_version: str
    gpus: int
    queue: str
    owner: str
    suspend: bool
    waits_for: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., workers: _Optional[int] = ..., slots: _Optional[int] = ..., implementation: _Optional[str] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., uid: _Optional[str] = ..., resource_version: _Optional[str] = ..., gpus: _Optional[int] = ..., queue: _Optional[str] = ..., owner: _Optional[str] = ..., suspend: _Optional[bool] = ..., waits_for: _Optional[str] = ...) -> None: ...

class DeleteMPIJobRequest(_message.Message):
    __slots__ = ("namespace", "name", "etag")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    etag: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteMPIJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: MPIJob
    def __init__(self, job: _Optional[_Union[MPIJob, _Mapping]] = ...) -> None: ...

class GetMPIJobStatusRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class MPIJobStatus(_message.Message):
    __slots__ = ("namespace", "name", "state", "reason", "message", "started", "completed", "launcher", "workers", "conditions", "pods", "ranks", "attempts", "progress", "waits_for", "missing")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    LAUNCHER_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    state: JobState
    reason: str
    message: str
    started: _timestamp_pb2.Timestamp
    completed: _timestamp_pb2.Timestamp
    launcher: Replicas
    workers: Replicas
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    pods: _containers.RepeatedCompositeFieldContainer[Pod]
    ranks: _containers.RepeatedCompositeFieldContainer[Rank]
    attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    progress: Progress
    waits_for: str
    missing: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., completed: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., launcher: _Optional[_Union[Replicas, _Mapping]] = ..., workers: _Optional[_Union[Replicas, _Mapping]] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., pods: _Optional[_Iterable[_Union[Pod, _Mapping]]] = ..., ranks: _Optional[_Iterable[_Union[Rank, _Mapping]]] = ..., attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., waits_for: _Optional[str] = ..., missing: _Optional[str] = ...) -> None: ...

class Replicas(_message.Message):
    __slots__ = ("wanted", "active", "succeeded", "failed")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    wanted: int
    active: int
    succeeded: int
    failed: int
    def __init__(self, wanted: _Optional[int] = ..., active: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("type", "status", "reason", "message", "last_update_time", "last_transition_time")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_TRANSITION_TIME_FIELD_NUMBER: _ClassVar[int]
    type: str
    status: str
    reason: str
    message: str
    last_update_time: _timestamp_pb2.Timestamp
    last_transition_time: _timestamp_pb2.Timestamp
    def __init__(self, type: _Optional[str] = ..., status: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., last_update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_transition_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Pod(_message.Message):
    __slots__ = ("name", "role", "index", "phase", "ready", "address", "node", "end", "exit_code", "signal", "reason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    role: str
    index: int
    phase: str
    ready: bool
    address: str
    node: str
    end: str
    exit_code: int
    signal: int
    reason: str
    def __init__(self, name: _Optional[str] = ..., role: _Optional[str] = ..., index: _Optional[int] = ..., phase: _Optional[str] = ..., ready: _Optional[bool] = ..., address: _Optional[str] = ..., node: _Optional[str] = ..., end: _Optional[str] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Rank(_message.Message):
    __slots__ = ("rank", "pod", "address", "end", "exit_code", "signal", "reason")
    RANK_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    rank: int
    pod: str
    address: str
    end: str
    exit_code: int
    signal: int
    reason: str
    def __init__(self, rank: _Optional[int] = ..., pod: _Optional[str] = ..., address: _Optional[str] = ..., end: _Optional[str] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("attempt", "reason", "message", "began", "ended", "rank", "host")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BEGAN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    reason: str
    message: str
    began: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    rank: int
    host: str
    def __init__(self, attempt: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., began: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rank: _Optional[int] = ..., host: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("step", "total", "unit", "fraction", "eta_seconds", "metrics")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    STEP_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    ETA_SECONDS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    step: float
    total: float
    unit: str
    fraction: float
    eta_seconds: float
    metrics: _containers.ScalarMap[str, float]
    def __init__(self, step: _Optional[float] = ..., total: _Optional[float] = ..., unit: _Optional[str] = ..., fraction: _Optional[float] = ..., eta_seconds: _Optional[float] = ..., metrics: _Optional[_Mapping[str, float]] = ...) -> None: ...

class WatchMPIJobStatusRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class WatchMPIJobStatusResponse(_message.Message):
    __slots__ = ("status", "deleted")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    status: MPIJobStatus
    deleted: JobKey
    def __init__(self, status: _Optional[_Union[MPIJobStatus, _Mapping]] = ..., deleted: _Optional[_Union[JobKey, _Mapping]] = ...) -> None: ...

class JobKey(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetMPIJobLogsRequest(_message.Message):
    __slots__ = ("namespace", "name", "rank", "worker", "launcher", "pod", "all_pods", "follow", "tail", "since", "until", "contains", "level", "attempt")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LAUNCHER_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    ALL_PODS_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    rank: int
    worker: int
    launcher: bool
    pod: str
    all_pods: bool
    follow: bool
    tail: int
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    contains: str
    level: str
    attempt: int
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., rank: _Optional[int] = ..., worker: _Optional[int] = ..., launcher: _Optional[bool] = ..., pod: _Optional[str] = ..., all_pods: _Optional[bool] = ..., follow: _Optional[bool] = ..., tail: _Optional[int] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., contains: _Optional[str] = ..., level: _Optional[str] = ..., attempt: _Optional[int] = ...) -> None: ...

class GetMPIJobLogsResponse(_message.Message):
    __slots__ = ("lines",)
    LINES_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[LogLine]
    def __init__(self, lines: _Optional[_Iterable[_Union[LogLine, _Mapping]]] = ...) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("time", "pod", "stream", "rank", "text", "attempt", "lost", "notes", "cut")
    TIME_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    pod: str
    stream: str
    rank: int
    text: str
    attempt: int
    lost: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    cut: bool
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pod: _Optional[str] = ..., stream: _Optional[str] = ..., rank: _Optional[int] = ..., text: _Optional[str] = ..., attempt: _Optional[int] = ..., lost: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., cut: _Optional[bool] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("type", "title", "status", "detail", "hint", "errors", "errors_left_out")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    type: str
    title: str
    status: int
    detail: str
    hint: str
    errors: _containers.RepeatedCompositeFieldContainer[WrongField]
    errors_left_out: int
    def __init__(self, type: _Optional[str] = ..., title: _Optional[str] = ..., status: _Optional[int] = ..., detail: _Optional[str] = ..., hint: _Optional[str] = ..., errors: _Optional[_Iterable[_Union[WrongField, _Mapping]]] = ..., errors_left_out: _Optional[int] = ...) -> None: ...

class WrongField(_message.Message):
    __slots__ = ("field", "message", "remedy", "position")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REMEDY_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    field: str
    message: str
    remedy: str
    position: str
    def __init__(self, field: _Optional[str] = ..., message: _Optional[str] = ..., remedy: _Optional[str] = ..., position: _Optional[str] = ...) -> None: ...
