"""The dashboard of whoever runs mpi-trainer: is the service itself well?"""

from __future__ import annotations

from typing import Final

from tools.monitoring.grafana import Dashboard, Panel, Query, Row
from tools.monitoring.sources import OURS, RANGE

CONTROLLER: Final = "controller_runtime_"
_WEBHOOK: Final = f"{CONTROLLER}webhook_"
_CALLS: Final = "mpi_trainer_server_"


def _rate(name: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({name}{{{OURS}{more}}}[{RANGE}]))"


def _slowest(name: str, by: str) -> str:
    """What 99 of 100 stay below."""
    return f"histogram_quantile(0.99, {_rate(f'{name}_bucket', f'le, {by}')})"


_SERVICE: Final = Row(
    "Service",
    (
        Panel(
            "Who leads",
            (Query(f"max by (pod) (leader_election_master_status{{{OURS}}})", "{{pod}}"),),
            kind="state-timeline",
            values={0: ("waits", "text"), 1: ("leads", "green")},
        ),
        Panel(
            "Worst lag of the event loop",
            (Query(f"max by (pod) (event_loop_lag_seconds{{{OURS}}})", "{{pod}}"),),
            unit="s",
            description="Above a second it is an alert; at ten seconds the lease is lost.",
        ),
        Panel(
            "Certificate of admission",
            (
                Query(
                    f"min(webhook_certificate_expiration_timestamp_seconds{{{OURS}}}) - time()",
                    "ends in",
                ),
            ),
            kind="stat",
            unit="s",
            width=4,
        ),
        Panel(
            "Faults of the program in 24 hours",
            (
                Query(
                    f"sum(increase({CONTROLLER}reconcile_panics_total{{{OURS}}}[24h]))",
                    "controller",
                ),
                Query(f"sum(increase({_WEBHOOK}panics_total{{{OURS}}}[24h]))", "webhook"),
            ),
            kind="stat",
            width=4,
            limits={1: "red"},
        ),
    ),
)
_WORK: Final = Row(
    "Work",
    (
        Panel(
            "Queue depth",
            (Query(f"sum by (name) (workqueue_depth{{{OURS}}})", "{{name}}"),),
        ),
        Panel(
            "Wait in the queue (p99)",
            (Query(_slowest("workqueue_queue_duration_seconds", "name"), "{{name}}"),),
            unit="s",
        ),
        Panel(
            "Time of a reconcile (p99)",
            (
                Query(
                    _slowest(f"{CONTROLLER}reconcile_time_seconds", "controller"),
                    "{{controller}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Reconciles by result",
            (
                Query(
                    _rate(f"{CONTROLLER}reconcile_total", "controller, result"),
                    "{{controller}} {{result}}",
                ),
            ),
            unit="ops",
        ),
        Panel(
            "Workers at work",
            (
                Query(
                    f"sum by (controller) ({CONTROLLER}active_workers{{{OURS}}})",
                    "{{controller}}",
                ),
                Query(
                    f"max by (controller) ({CONTROLLER}max_concurrent_reconciles{{{OURS}}})",
                    "{{controller}} at most",
                ),
            ),
        ),
        Panel(
            "Oldest reconcile at work",
            (
                Query(
                    f"max by (name) (workqueue_longest_running_processor_seconds{{{OURS}}})",
                    "{{name}}",
                ),
            ),
            unit="s",
        ),
    ),
)
_API: Final = Row(
    "API server",
    (
        Panel(
            "Requests by answer",
            (Query(_rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}"),),
            unit="reqps",
        ),
        Panel(
            "Writes",
            (
                Query(
                    _rate("rest_client_requests_total", "method", ',method!="GET",code=~"2.."'),
                    "{{method}}",
                ),
            ),
            unit="wps",
            stacked=True,
            description="Each is a revision of etcd, at most.",
        ),
        Panel(
            "Latency (p99)",
            (Query(_slowest("rest_client_request_duration_seconds", "verb"), "{{verb}}"),),
            unit="s",
        ),
        Panel(
            "Full lists after the first",
            (
                Query(
                    f"sum by (name) (increase(reflector_relists_total{{{OURS}}}[1h]))", "{{name}}"
                ),
            ),
            description="Within an hour. Each costs the API server all objects of a kind.",
        ),
        Panel(
            "Since anything was heard",
            (Query(f"max by (name) (reflector_last_event_age_seconds{{{OURS}}})", "{{name}}"),),
            unit="s",
        ),
        Panel(
            "Unreadable objects and lost Events",
            (
                Query(
                    f"sum by (name) (increase(reflector_unreadable_objects_total{{{OURS}}}[1h]))",
                    "{{name}} unreadable",
                ),
                Query(f"sum(increase(event_recorder_dropped_total{{{OURS}}}[1h]))", "Events lost"),
            ),
        ),
    ),
)
_JOBS: Final = Row(
    "Jobs",
    (
        Panel(
            "MPIJobs by state",
            (Query(f"sum by (state) (training_operator_mpijobs{{{OURS}}})", "{{state}}"),),
            stacked=True,
        ),
        Panel(
            "TrainJobs by state",
            (Query(f"sum by (state) (kubeflow_trainer_trainjobs{{{OURS}}})", "{{state}}"),),
            stacked=True,
        ),
        Panel(
            "From creation to running (p99)",
            (
                Query(
                    "histogram_quantile(0.99, "
                    + _rate("training_operator_mpijob_time_to_running_seconds_bucket", "le")
                    + ")",
                    "MPIJobs",
                ),
                Query(
                    "histogram_quantile(0.99, "
                    + _rate("kubeflow_trainer_trainjob_time_to_running_seconds_bucket", "le")
                    + ")",
                    "TrainJobs",
                ),
            ),
            unit="s",
        ),
    ),
)
_ADMISSION: Final = Row(
    "Admission",
    (
        Panel(
            "Answers",
            (Query(_rate(f"{_WEBHOOK}requests_total", "webhook, code"), "{{webhook}} {{code}}"),),
            unit="reqps",
        ),
        Panel(
            "Time to answer (p99)",
            (Query(_slowest(f"{_WEBHOOK}latency_seconds", "webhook"), "{{webhook}}"),),
            unit="s",
            description="The API server waits for ten seconds.",
        ),
        Panel(
            "Not answered yet",
            (Query(f"sum by (webhook) ({_WEBHOOK}requests_in_flight{{{OURS}}})", "{{webhook}}"),),
        ),
        Panel(
            "Jobs created by kind and version, in 24 hours",
            (
                Query(
                    f"sum by (kind, version) (increase(mpi_trainer_jobs_admitted_total{{{OURS}}}"
                    "[24h]))",
                    "{{kind}} {{version}}",
                ),
            ),
            stacked=True,
            description="How far clients have moved to another API; `odh migrate report` lists"
            " the jobs.",
        ),
    ),
)
_SERVER: Final = Row(
    "REST API and dashboard",
    (
        Panel(
            "Calls by answer",
            (Query(_rate(f"{_CALLS}requests_total", "code"), "{{code}}"),),
            unit="reqps",
            description="By HTTP and gRPC; 499 is a caller who did not wait.",
        ),
        Panel(
            "Time to answer (p99)",
            (Query(_slowest(f"{_CALLS}request_duration_seconds", "endpoint"), "{{endpoint}}"),),
            unit="s",
            description="Reading long logs takes as long as its reader.",
        ),
        Panel(
            "Open now",
            (
                Query(f"sum({_CALLS}requests_in_flight{{{OURS}}})", "calls"),
                Query(f"sum({_CALLS}live_streams{{{OURS}}})", "live streams"),
            ),
        ),
    ),
)
_PROCESS: Final = Row(
    "Process",
    (
        Panel(
            "CPU",
            (Query(_rate("process_cpu_seconds_total", "pod"), "{{pod}}"),),
            description="One CPU is the most that one process can use.",
        ),
        Panel(
            "Memory",
            (Query(f"max by (pod) (process_resident_memory_bytes{{{OURS}}})", "{{pod}}"),),
            unit="bytes",
        ),
        Panel(
            "Open files",
            (Query(f"max by (pod) (process_open_fds{{{OURS}}})", "{{pod}}"),),
        ),
    ),
)
SERVICE: Final = Dashboard(
    uid="mpi-trainer-service",
    title="mpi-trainer",
    description="Controller, admission and server: leadership, work, API servers, jobs.",
    rows=(_SERVICE, _WORK, _API, _JOBS, _ADMISSION, _SERVER, _PROCESS),
)
