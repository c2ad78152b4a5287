"""Names of a job's pods and hosts, and the two lists that MPI programs read them from.

The names are upstream's to the letter: existing hostfiles, network policies and dashboards keep
working. The hostfile lists every host that should exist; `discover_hosts.sh` those that do.
"""

from __future__ import annotations

from collections.abc import Collection

from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.model import Host

CONFIG_DIR = "/etc/mpi"
HOSTFILE = f"{CONFIG_DIR}/hostfile"
DISCOVER_HOSTS = f"{CONFIG_DIR}/discover_hosts.sh"


def launcher_name(job: str) -> str:
    return f"{job}-launcher"


def worker_name(job: str, index: int) -> str:
    return f"{job}-worker-{index}"


def worker_index(job: str, pod: str) -> int:
    """The number in the name of a worker; 0 where it has none."""
    number = pod.removeprefix(f"{job}-worker-")
    return int(number) if number.isdecimal() else 0


def host_name(job: str, replicated_job: str, replica: int = 0, index: int = 0) -> str:
    """Of a pod of a TrainJob, as JobSet gives it; it stays the same when the pod is made anew."""
    return f"{job}-{replicated_job}-{replica}-{index}"


def address(pod: str, job: MPIJob, domain: str = "") -> str:
    """The pod's DNS name; `domain` only where the cluster's resolver needs the full name."""
    short = f"{pod}.{job.name}.{job.namespace}.svc"
    return f"{short}.{domain}" if domain else short


def hosts(job: MPIJob, domain: str = "") -> tuple[Host, ...]:
    """Where ranks go, in hostfile order: the launcher first where it is a worker too."""
    pods = [worker_name(job.name, i) for i in range(job.workers)]
    if job.spec.run_launcher_as_worker:
        pods.insert(0, launcher_name(job.name))
    return tuple(Host(pod, address(pod, job, domain), job.slots) for pod in pods)


def discovery(job: MPIJob, alive: str, domain: str = "") -> str:
    """The script in the job's ConfigMap: the workers in the file `alive`, kept by the agent on
    the launcher; where there is none, all. Output and order are upstream's.
    """
    everyone = discover_hosts(job, {h.pod for h in hosts(job, domain)}, domain).splitlines()
    always = 2 if job.spec.run_launcher_as_worker else 1
    asking = (f"if [ -r {alive} ]; then exec cat {alive}; fi",)
    return "".join(f"{line}\n" for line in (*everyone[:always], *asking, *everyone[always:]))


def discover_hosts(job: MPIJob, running: Collection[str] = (), domain: str = "") -> str:
    """The script that elastic Horovod asks for the hosts of now; `running` names running pods.

    Upstream's order: the launcher first, running or not, where it is a worker too; then the
    workers by name as text, worker-10 before worker-2. Pods that the job has no more are left out.
    """
    launcher = launcher_name(job.name)
    listed = [h for h in hosts(job, domain) if h.pod == launcher or h.pod in running]
    listed.sort(key=lambda h: (h.pod != launcher, h.pod))
    return "".join(("#!/bin/sh\n", *(f"echo {host.address}\n" for host in listed)))
