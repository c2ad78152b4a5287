"""Series of a cluster that is well, as promtool reads them, and single ones in their place.

`train` is a job with one worker; two replicas run, of which one leads. A value `a+bxn` begins with
a and grows by b a minute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MINUTES: Final = 110
END: Final = "100m"
_A: Final = 'job="mpi-trainer-metrics",namespace="mpi-trainer",pod="mpi-trainer-a"'
_B: Final = _A.replace("trainer-a", "trainer-b")
_WEBHOOK: Final = _A.replace("-metrics", "-webhook").replace("trainer-a", "trainer-webhook-a")
_SERVER: Final = _A.replace("-metrics", "-server-metrics").replace("trainer-a", "trainer-server-a")
_CALLS: Final = "mpi_trainer_server"
_QUEUE: Final = f'{_A},name="mpijob",controller="mpijob"'
_OF_TEAM: Final = _A.replace('namespace="mpi-trainer"', 'namespace="team"')
_WORKER: Final = 'namespace="team",pod="train-worker-0"'
_CONTAINER: Final = f'{_WORKER},container="main"'
_GROWS: Final = f"1+1x{MINUTES}"
_STAYS: Final = f"1x{MINUTES}"
_NEVER: Final = f"0x{MINUTES}"
_RECONCILE: Final = "controller_runtime_reconcile"
_ADMISSION: Final = "controller_runtime_webhook"
_TRAINJOB: Final = f'{_OF_TEAM},framework="mpi"'
_MPIJOB: Final = "training_operator_mpijob"


def constant(value: float) -> str:
    return f"{value}x{MINUTES}"


def growing(each_minute: float) -> str:
    return f"0+{each_minute}x{MINUTES}"


def _histogram(name: str, labels: str) -> dict[str, str]:
    """All within the first bucket."""
    return {
        f'{name}_bucket{{{labels},le="1"}}': _GROWS,
        f'{name}_bucket{{{labels},le="10"}}': _GROWS,
        f'{name}_bucket{{{labels},le="+Inf"}}': _GROWS,
        f"{name}_sum{{{labels}}}": growing(0.5),
        f"{name}_count{{{labels}}}": _GROWS,
    }


def _machinery() -> dict[str, str]:
    return {
        f'leader_election_master_status{{{_A},name="mpi-trainer"}}': _STAYS,
        f'leader_election_master_status{{{_B},name="mpi-trainer"}}': _NEVER,
        f"event_loop_lag_seconds{{{_A}}}": constant(0.02),
        f'workqueue_depth{{{_QUEUE},priority="0"}}': constant(3),
        f'workqueue_depth{{{_QUEUE},priority="-100"}}': constant(5000),
        f"workqueue_longest_running_processor_seconds{{{_QUEUE}}}": constant(0.1),
        **_histogram("workqueue_queue_duration_seconds", _QUEUE),
        **_histogram(f"{_RECONCILE}_time_seconds", f'{_A},controller="mpijob"'),
        f'{_RECONCILE}_total{{{_A},controller="mpijob",result="success"}}': growing(60),
        f'{_RECONCILE}_total{{{_A},controller="mpijob",result="error"}}': growing(1),
        f'{_RECONCILE}_errors_total{{{_A},controller="mpijob"}}': growing(1),
        f'{_RECONCILE}_panics_total{{{_A},controller="mpijob"}}': _NEVER,
        f'controller_runtime_active_workers{{{_A},controller="mpijob"}}': _STAYS,
        f'controller_runtime_max_concurrent_reconciles{{{_A},controller="mpijob"}}': constant(16),
        f'rest_client_requests_total{{{_A},method="GET",code="200",host="api"}}': growing(60),
        f'rest_client_requests_total{{{_A},method="PATCH",code="200",host="api"}}': growing(300),
        f'rest_client_requests_total{{{_A},method="POST",code="403",host="api"}}': growing(1),
        f'rest_client_requests_total{{{_A},method="PATCH",code="409",host="api"}}': growing(30),
        f'rest_client_requests_total{{{_A},method="GET",code="<error>",host="api"}}': growing(1),
        **_histogram("rest_client_request_duration_seconds", f'{_A},verb="GET",host="api"'),
        f'reflector_relists_total{{{_A},name="pods"}}': growing(0.1),
        f'reflector_unreadable_objects_total{{{_A},name="pods"}}': _NEVER,
        f'reflector_last_event_age_seconds{{{_A},name="pods"}}': constant(30),
        f"event_recorder_dropped_total{{{_A}}}": _NEVER,
        f"process_cpu_seconds_total{{{_A}}}": growing(6),
        f"process_resident_memory_bytes{{{_A}}}": constant(1e8),
        f"process_open_fds{{{_A}}}": constant(40),
    }


def _admission() -> dict[str, str]:
    path = f'{_WEBHOOK},webhook="/mpijobs"'
    return {
        **_histogram(f"{_ADMISSION}_latency_seconds", path),
        f'{_ADMISSION}_requests_total{{{path},code="200"}}': _GROWS,
        f"{_ADMISSION}_requests_in_flight{{{path}}}": _NEVER,
        f"{_ADMISSION}_panics_total{{{_WEBHOOK}}}": _NEVER,
        f'mpi_trainer_jobs_admitted_total{{{_WEBHOOK},kind="MPIJob",version="v1"}}': _GROWS,
        f"webhook_certificate_expiration_timestamp_seconds{{{_WEBHOOK}}}": constant(40 * 86400),
    }


def _server() -> dict[str, str]:
    calls = f'{_SERVER},endpoint="listMPIJobs"'
    return {
        f'{_CALLS}_requests_total{{{calls},code="200"}}': growing(60),
        f'{_CALLS}_requests_total{{{calls},code="500"}}': _NEVER,
        **_histogram(f"{_CALLS}_request_duration_seconds", calls),
        f"{_CALLS}_requests_in_flight{{{_SERVER}}}": _STAYS,
        f"{_CALLS}_live_streams{{{_SERVER}}}": constant(20),
    }


def _jobs() -> dict[str, str]:
    """Some wait at every moment, and others begin."""
    return {
        f'{_MPIJOB}s{{{_OF_TEAM},state="Created"}}': constant(2),
        f'{_MPIJOB}s{{{_OF_TEAM},state="Running"}}': constant(4),
        f"{_MPIJOB}_succeeded_total{{{_OF_TEAM}}}": _GROWS,
        f"{_MPIJOB}_failed_total{{{_OF_TEAM}}}": _GROWS,
        **_histogram(f"{_MPIJOB}_duration_seconds", _OF_TEAM),
        **_histogram(f"{_MPIJOB}_time_to_running_seconds", _OF_TEAM),
        f'kubeflow_trainer_trainjobs{{{_OF_TEAM},state="Created"}}': constant(2),
        **_histogram("kubeflow_trainer_trainjob_time_to_running_seconds", _TRAINJOB),
    }


def _pods() -> dict[str, str]:
    phases = {
        f'kube_pod_status_phase{{{_WORKER},phase="{phase}"}}': constant(int(phase == "Running"))
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    }
    owner = 'created_by_kind="MPIJob",created_by_name="train",node="n1"'
    return {
        **phases,
        f"kube_pod_info{{{_WORKER},{owner}}}": _STAYS,
        f'kube_pod_status_ready{{{_WORKER},condition="true"}}': _STAYS,
        f"kube_pod_container_status_restarts_total{{{_CONTAINER}}}": _NEVER,
        f"container_cpu_usage_seconds_total{{{_CONTAINER}}}": _GROWS,
        f"container_memory_working_set_bytes{{{_CONTAINER}}}": _STAYS,
        f"container_fs_reads_bytes_total{{{_CONTAINER}}}": _GROWS,
        f"container_fs_writes_bytes_total{{{_CONTAINER}}}": _GROWS,
        f"container_network_receive_bytes_total{{{_WORKER}}}": _GROWS,
        f"container_network_transmit_bytes_total{{{_WORKER}}}": _GROWS,
        f'DCGM_FI_DEV_GPU_UTIL{{{_WORKER},gpu="0"}}': constant(90),
        f'DCGM_FI_DEV_FB_USED{{{_WORKER},gpu="0"}}': constant(1024),
    }


HEALTHY: Final[Mapping[str, str]] = {
    **_machinery(),
    **_admission(),
    **_server(),
    **_jobs(),
    **_pods(),
}


def cluster(changed: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """A test of promtool's with these series. `changed`: by a regular expression of healthy ones,
    what they have instead; None takes them away."""
    given = dict(HEALTHY)
    for pattern, value in (changed or {}).items():
        hit = [one for one in given if re.match(pattern, one)]
        if not hit:
            raise ValueError(f"no healthy series is like {pattern}")
        for one in hit:
            if value is None:
                del given[one]
            else:
                given[one] = value
    series = [{"series": name, "values": values} for name, values in given.items()]
    return {"interval": "1m", "input_series": series}
