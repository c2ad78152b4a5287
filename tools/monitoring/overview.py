"""The dashboard "MPIJob Overview": all jobs, one job, and what its pods use (OBS-1).

No exporter has the state of one job as a series; that of its pods tells it. Workers are found by
their owner, so that pods of other kinds with such names are not offered.
"""

from __future__ import annotations

from typing import Final

from tools.monitoring.grafana import Dashboard, Panel, Query, Row, Variable
from tools.monitoring.sources import OURS, RANGE

PODS: Final = 'namespace="$namespace",pod=~"$mpijob-(worker-[0-9]+|launcher(-[a-z0-9]+)?)"'
_EXPORTED: Final = PODS.replace("namespace=", "exported_namespace=").replace(
    "pod=", "exported_pod="
)
_MAIN: Final = f'{PODS},container!="",container!="POD"'
_OWNED: Final = 'created_by_kind="MPIJob"'
_DURATION: Final = "training_operator_mpijob_duration_seconds"
_PHASES: Final = {
    1: ("Pending", "yellow"),
    2: ("Running", "blue"),
    3: ("Succeeded", "green"),
    4: ("Failed", "red"),
    5: ("Unknown", "purple"),
}


def _rate(name: str, matchers: str) -> str:
    return f"sum by (pod) (rate({name}{{{matchers}}}[{RANGE}]))"


def _gpu(name: str) -> str:
    """Also where the scrape of the exporter has no honor_labels, which renames the pod's labels."""
    renamed = '"pod", "$1", "exported_pod", "(.*)"'
    there = f"label_replace(avg by (exported_pod) ({name}{{{_EXPORTED}}}), {renamed})"
    return f"avg by (pod) ({name}{{{PODS}}}) or {there}"


def _phase() -> str:
    """One number for each pod; all of a pod's phases are there, and one of them is 1."""
    of_each = (
        f'{n} * max by (pod) (kube_pod_status_phase{{{PODS},phase="{text}"}})'
        for n, (text, _) in _PHASES.items()
    )
    return " + ".join(of_each)


_CPU: Final = _rate("container_cpu_usage_seconds_total", _MAIN)
_MEMORY: Final = f"sum by (pod) (container_memory_working_set_bytes{{{_MAIN}}})"

_CLUSTER: Final = Row(
    "Cluster",
    (
        Panel(
            "Jobs by state",
            (Query(f"sum by (state) (training_operator_mpijobs{{{OURS}}})", "{{state}}"),),
            stacked=True,
            description="MPIJobs that there are now. The replica that leads counts them.",
        ),
        Panel(
            "GPU utilisation",
            (
                Query("avg(DCGM_FI_DEV_GPU_UTIL)", "all GPUs"),
                Query("min(DCGM_FI_DEV_GPU_UTIL)", "least used GPU"),
            ),
            unit="percent",
            description="By the DCGM exporter; empty without one.",
        ),
        Panel(
            "Average duration over 7 days",
            (
                Query(
                    f"sum(increase({_DURATION}_sum{{{OURS}}}[7d])) / "
                    f"sum(increase({_DURATION}_count{{{OURS}}}[7d]))",
                    "all namespaces",
                ),
            ),
            kind="stat",
            unit="s",
            width=4,
            description="From start to end, of MPIJobs that ended; needs as many days of history.",
        ),
        Panel(
            "Ended in 7 days",
            tuple(
                Query(f"sum(increase(training_operator_mpijob_{end}_total{{{OURS}}}[7d]))", end)
                for end in ("succeeded", "failed")
            ),
            kind="stat",
            width=4,
        ),
    ),
)
_JOB: Final = Row(
    "Job $namespace/$mpijob",
    (
        Panel(
            "Status time line",
            (Query(_phase(), "{{pod}}"),),
            kind="state-timeline",
            width=12,
            values=_PHASES,
            description="Phases of the job's pods. The launcher's shows the attempts.",
        ),
        Panel(
            "Workers",
            (
                Query(f"max by (pod, node) (kube_pod_info{{{PODS}}})"),
                Query(f"max by (pod, phase) (kube_pod_status_phase{{{PODS}}} == 1)"),
                Query(f'max by (pod) (kube_pod_status_ready{{{PODS},condition="true"}})', "ready"),
                Query(
                    f"sum by (pod) (kube_pod_container_status_restarts_total{{{PODS}}})",
                    "restarts",
                ),
                Query(_CPU.replace(RANGE, "5m"), "CPUs"),
                Query(_MEMORY, "memory"),
                Query(_gpu("DCGM_FI_DEV_GPU_UTIL"), "GPU"),
            ),
            kind="table",
            width=12,
            units={"memory": "bytes", "GPU": "percent"},
            description="The job's pods as they are now, the launcher's too.",
        ),
        Panel(
            "GPU utilisation per worker",
            (Query(_gpu("DCGM_FI_DEV_GPU_UTIL"), "{{pod}}"),),
            unit="percent",
            width=12,
            description="Ranks that wait for each other in a collective show as an idle GPU.",
        ),
        Panel(
            "Network throughput",
            (
                Query(_rate("container_network_receive_bytes_total", PODS), "{{pod}} receives"),
                Query(_rate("container_network_transmit_bytes_total", PODS), "{{pod}} sends"),
            ),
            unit="Bps",
            width=12,
            description="Of the pod's own network; RDMA and the host's network are not in it.",
        ),
    ),
)
_RESOURCES: Final = Row(
    "Resources",
    (
        Panel("CPU per worker", (Query(_CPU, "{{pod}}"),), description="CPUs that are busy."),
        Panel("Memory per worker", (Query(_MEMORY, "{{pod}}"),), unit="bytes"),
        Panel(
            "Disk I/O per worker",
            (
                Query(_rate("container_fs_reads_bytes_total", _MAIN), "{{pod}} reads"),
                Query(_rate("container_fs_writes_bytes_total", _MAIN), "{{pod}} writes"),
            ),
            unit="Bps",
            description="Of disks of the node; network file systems are under network throughput.",
        ),
        Panel(
            "GPU memory per worker",
            (Query(_gpu("DCGM_FI_DEV_FB_USED"), "{{pod}}"),),
            unit="decmbytes",
            description="The average of a pod's GPUs.",
        ),
    ),
)
OVERVIEW: Final = Dashboard(
    uid="mpijob-overview",
    title="MPIJob Overview",
    description="MPIJobs of a cluster, one of them, and what its pods use.",
    variables=(
        Variable("namespace", "Namespace", f"label_values(kube_pod_info{{{_OWNED}}}, namespace)"),
        Variable(
            "mpijob",
            "MPIJob",
            f'label_values(kube_pod_info{{{_OWNED},namespace="$namespace"}}, created_by_name)',
        ),
    ),
    rows=(_CLUSTER, _JOB, _RESOURCES),
)
