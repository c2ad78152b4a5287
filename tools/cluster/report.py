"""What runs, for a person and for scripts: processes, memory, CPU time, logs and environment."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tools.cluster import cgroups, processes
from tools.cluster.spec import Spec
from tools.cluster.up import why_unhealthy


class Usage(msgspec.Struct, frozen=True):
    """What one process uses."""

    pid: int
    rss_mib: int
    pss_mib: int
    cpu_seconds: float


def usage(pid: int) -> Usage:
    """Memory and CPU of a living process; PSS counts shared pages once over all processes."""
    status = Path(f"/proc/{pid}/status").read_text()
    rss = int(status.partition("VmRSS:")[2].split()[0]) if "VmRSS:" in status else 0
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        pss = int(rollup.partition("\nPss:")[2].split()[0])
    except (OSError, IndexError):
        pss = rss
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Usage(pid, rss // 1024, pss // 1024, round(ticks / os.sysconf("SC_CLK_TCK"), 1))


def describe(spec: Spec) -> str:
    """One cluster: its state, its processes and what it uses in all."""
    fault = why_unhealthy(spec)
    lines = [
        f"{spec.name}: {fault or 'up'}",
        f"  profile {spec.profile}, add-ons {', '.join(spec.addons) or 'none'}",
        f"  API {spec.api_url}, KUBECONFIG {spec.kubeconfig}",
    ]
    named = processes.recorded(spec.state)
    for name, pid in named.items():
        lines.append(f"  {name:<20} {_row(usage(pid)) if pid else 'dead'}")
    lines.append(f"  memory of all processes, pods included: {memory_mib(spec)} MiB")
    return "\n".join(lines)


def memory_mib(spec: Spec) -> int:
    """Memory of the cluster's processes and of its pods, shared pages counted once."""
    pids = set(processes.marked(spec.state))
    for index in range(1, spec.real_nodes + 1):
        pids.update(cgroups.members(spec.addresses.node(index).netns))
    total = 0
    for pid in pids:
        try:
            total += usage(pid).pss_mib
        except OSError:
            continue
    return total


def log_files(spec: Spec, component: str = "") -> list[Path]:
    """The log files of one component, or of all."""
    return sorted((spec.state / "log").glob(f"{component or '*'}.log"))


def environment(spec: Spec) -> dict[str, str]:
    """The environment in which kubectl is this cluster's own and talks to it."""
    path = os.pathsep.join([*spec.programs.values(), os.environ.get("PATH", "")])
    return {**os.environ, "KUBECONFIG": str(spec.kubeconfig), "PATH": path}


def _row(used: Usage) -> str:
    return f"pid {used.pid:>7}  rss {used.rss_mib:>5} MiB  cpu {used.cpu_seconds:>7.1f} s"
