"""Where figures come from: the matchers that queries share, and the metrics of other exporters.

Others' metrics are listed by hand, with the labels that are used, because their processes are not
here to be asked: what is not listed may not be in a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OURS: Final = 'job=~".*mpi-(trainer|operator).*"'
"""Every controller of a cluster has a workqueue; this is ours, by the name of its Service."""
RANGE: Final = "$__rate_interval"
"""Grafana's word for a range that has several samples of whatever is read"""

CADVISOR: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset({"namespace", "pod", "container"})
    for name in (
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_fs_reads_bytes_total",
        "container_fs_writes_bytes_total",
        "container_network_receive_bytes_total",
        "container_network_transmit_bytes_total",
    )
}
KUBE_STATE_METRICS: Final[Mapping[str, frozenset[str]]] = {
    "kube_pod_info": frozenset(
        {"namespace", "pod", "node", "created_by_kind", "created_by_name", "pod_ip", "host_ip"}
    ),
    "kube_pod_status_phase": frozenset({"namespace", "pod", "phase"}),
    "kube_pod_status_ready": frozenset({"namespace", "pod", "condition"}),
    "kube_pod_container_status_restarts_total": frozenset({"namespace", "pod", "container"}),
}
DCGM: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset({"namespace", "pod", "exported_namespace", "exported_pod", "gpu"})
    for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED")
}
OTHERS: Final = {**CADVISOR, **KUBE_STATE_METRICS, **DCGM}
TARGET: Final = frozenset({"job", "namespace", "pod", "service", "instance", "endpoint"})
"""labels that Prometheus itself adds to whatever it reads"""
