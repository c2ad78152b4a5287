"""Alerts on mpi-trainer, as values and as rules of Prometheus.

Each has a section of its name in docs/runbooks.md. A description says what it means for jobs and
is the same whatever fired; the summary names what did. `wait` is how long a thing must hold: none
of them is meant to wake somebody for what mends itself.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tools.monitoring.sources import OURS

RUNBOOKS: Final = "docs/runbooks.md"
WARNING: Final = "warning"
CRITICAL: Final = "critical"
DAY: Final = 24 * 3600
_WRITES: Final = f'rest_client_requests_total{{{OURS},method!="GET"'


class Alert(msgspec.Struct, frozen=True):
    """`summary` is a template of Prometheus; `description` is not."""

    name: str
    expr: str
    wait: str
    severity: str
    summary: str
    description: str

    @property
    def runbook(self) -> str:
        return f"{RUNBOOKS}#{self.name.lower()}"

    def rule(self) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.wait,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": self.runbook,
            },
        }


def _stuck(kind: str, present: str, began: str) -> Alert:
    """Suspended jobs are another state; a created one either runs within minutes or fails."""
    waits = f'sum by (namespace) ({present}{{{OURS},state="Created"}}) > 0'
    none_began = f"sum by (namespace) (increase({began}{{{OURS}}}[1h])) > 0"
    return Alert(
        f"MPITrainer{kind}sStuck",
        f"({waits}) unless ({none_began})",
        "1h",
        WARNING,
        f"{{{{ $value }}}} {kind}s of {{{{ $labels.namespace }}}} wait, and none began to run for"
        " an hour.",
        f"{kind}s are created and their pods do not run: quota, nodes, images or volumes are"
        " missing, or nobody serves the jobs.",
    )


ALERTS: Final = (
    Alert(
        "MPITrainerDown",
        f"absent(leader_election_master_status{{{OURS}}})",
        "10m",
        CRITICAL,
        "Prometheus reads no controller of mpi-trainer.",
        "No pod of the controller runs, or Prometheus may not read its metrics. Jobs that run go"
        " on; new ones do not begin and ended ones are not told.",
    ),
    Alert(
        "MPITrainerNobodyLeads",
        f"max(leader_election_master_status{{{OURS}}}) == 0",
        "2m",
        CRITICAL,
        "No replica of mpi-trainer leads; no job is served.",
        "See the pods' logs for the lease that they cannot get or keep.",
    ),
    Alert(
        "MPITrainerLeaseChanges",
        f"sum(changes(leader_election_master_status{{{OURS}}}[1h])) > 6",
        "5m",
        WARNING,
        "The lease of mpi-trainer was won or lost {{ $value }} times within an hour.",
        "Every change of the leader costs a list of all jobs. The leader cannot renew its lease in"
        " time: its event loop is late, or the API server is.",
    ),
    Alert(
        "MPITrainerEventLoopLate",
        # Ten seconds lose the lease; a second, in every one of five minutes, is no accident.
        f"max by (namespace, pod) (event_loop_lag_seconds{{{OURS}}}) > 1",
        "5m",
        WARNING,
        "The event loop of {{ $labels.pod }} is late by {{ $value | humanizeDuration }}.",
        "Jobs are served late, and at ten seconds the controller loses its lease. See which queue"
        " is long (workqueue_depth) and whether the pod is held by its CPU limit.",
    ),
    Alert(
        "MPITrainerQueueLong",
        f'sum by (name) (workqueue_depth{{{OURS},priority="0"}}) > 100',
        "15m",
        WARNING,
        "{{ $value }} keys wait in the queue {{ $labels.name }}.",
        "More changes of new and running jobs come in than are worked off, for a quarter of an"
        " hour. Finished jobs are not counted; they wait behind the others.",
    ),
    Alert(
        "MPITrainerReconcilesFail",
        f"sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{OURS}}}[10m]))"
        f" / sum by (controller) (rate(controller_runtime_reconcile_total{{{OURS}}}[10m])) > 0.2",
        "15m",
        WARNING,
        "{{ $value | humanizePercentage }} of the reconciles of {{ $labels.controller }} fail.",
        "A reconcile that fails is tried again, at longer and longer intervals: the jobs concerned"
        " stand still.",
    ),
    Alert(
        "MPITrainerProgramFault",
        f"sum by (pod) (increase(controller_runtime_reconcile_panics_total{{{OURS}}}[1h])) > 0"
        f" or sum by (pod) (increase(controller_runtime_webhook_panics_total{{{OURS}}}[1h])) > 0",
        "0m",
        WARNING,
        "{{ $labels.pod }} met a fault of its own program.",
        "The job concerned is tried again, a request of admission is refused. The traceback in the"
        " pod's log belongs into a report to the project.",
    ),
    Alert(
        "MPITrainerWritesRefused",
        f'sum by (code) (rate({_WRITES},code=~"400|401|403|413|422|429"}}[10m])) > 0.1',
        "15m",
        WARNING,
        "The API server refuses writes of mpi-trainer with status {{ $labels.code }}.",
        "Pods or status of some jobs cannot be written: rights (401, 403), a quota of the namespace"
        " (403), an admission webhook or policy (400, 403, 422), or too many requests (429).",
    ),
    Alert(
        "MPITrainerAPIServerFails",
        f'sum(rate(rest_client_requests_total{{{OURS},code=~"5..|<error>"}}[10m]))'
        f" / sum(rate(rest_client_requests_total{{{OURS}}}[10m])) > 0.1",
        "10m",
        WARNING,
        "{{ $value | humanizePercentage }} of the requests of mpi-trainer have no proper answer.",
        "The API server answers with errors of its own, or not at all. Jobs that run go on; what"
        " becomes of them is told late.",
    ),
    Alert(
        "MPITrainerWritesMany",
        f'sum(rate({_WRITES},code=~"2.."}}[10m])) > 50',
        "30m",
        WARNING,
        "mpi-trainer writes {{ $value | humanize }} times a second, for half an hour.",
        "Each write costs etcd a revision, which it keeps until it compacts. So many at once are"
        " normal only while hundreds of jobs begin or end.",
    ),
    Alert(
        "MPITrainerObjectsUnreadable",
        f"sum by (name) (increase(reflector_unreadable_objects_total{{{OURS}}}[1h])) > 0",
        "5m",
        WARNING,
        "The controller cannot read some objects of {{ $labels.name }}.",
        "These objects are left alone, as if they were not there. The log names them and"
        " the field.",
    ),
    _stuck(
        "MPIJob",
        "training_operator_mpijobs",
        "training_operator_mpijob_time_to_running_seconds_count",
    ),
    _stuck(
        "TrainJob",
        "kubeflow_trainer_trainjobs",
        "kubeflow_trainer_trainjob_time_to_running_seconds_count",
    ),
    Alert(
        "MPITrainerAdmissionSlow",
        "histogram_quantile(0.9, sum by (le) "
        f"(rate(controller_runtime_webhook_latency_seconds_bucket{{{OURS}}}[10m]))) > 3",
        "10m",
        WARNING,
        "One of ten answers of admission takes more than {{ $value | humanizeDuration }}.",
        "The API server gives up after ten seconds, and then refuses the job.",
    ),
    Alert(
        "MPITrainerServerFails",
        f'sum(rate(mpi_trainer_server_requests_total{{{OURS},code=~"5.."}}[10m]))'
        f" / sum(rate(mpi_trainer_server_requests_total{{{OURS}}}[10m])) > 0.1",
        "10m",
        WARNING,
        "{{ $value | humanizePercentage }} of the calls of the REST API fail on our side.",
        "The dashboard and programs get errors (500, 503, 504). Jobs go on; `odh` with a kubeconfig"
        " does not need the server.",
    ),
    Alert(
        "MPITrainerCertificateOld",
        "min by (namespace, pod) (webhook_certificate_expiration_timestamp_seconds"
        f"{{{OURS}}} - time()) < {14 * DAY}",
        "1h",
        CRITICAL,
        "The certificate of {{ $labels.pod }} ends in {{ $value | humanizeDuration }}.",
        "Our own certificates live for 90 days and are renewed after 60. Once it has ended, no job"
        " can be created or changed.",
    ),
)
