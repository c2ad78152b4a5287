"""Pods of older MPIJobs, whose ranks were started by `kubectl exec`, as pods reached by SSH.

What belonged to `kubectl exec` goes: workers that only sleep, and the variable that names the
script. Danger: the image must have an SSH server now; no reading of the job shows whether it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.pods import PodTemplate, without_nulls
from mpi_trainer.migrate.report import CARRIED, CHANGED, FieldReport, Object

RSH_AGENT = "OMPI_MCA_plm_rsh_agent"
SCRIPT = "kubexec.sh"


def launcher_pod(template: PodTemplate, main: str) -> Object:
    """The main container first, where one is named."""
    pod: Object = without_nulls(template.content)
    containers: list[Object] = (pod.get("spec") or {}).get("containers") or []
    containers.sort(key=lambda one: one.get("name") != main)
    for container in containers:
        if any(map(names_script, container.get("env") or ())):
            container["env"] = [one for one in container["env"] if not names_script(one)]
    return pod


def worker_pod(template: PodTemplate) -> Object:
    pod: Object = without_nulls(template.content)
    for container in ((pod.get("spec") or {}).get("containers") or ())[:1]:
        if sleeps(container):
            container.pop("command", None)
            container.pop("args", None)
    return pod


def launcher_reports(template: PodTemplate, path: Path) -> Iterator[FieldReport]:
    yield FieldReport(path, CARRIED, "spec.mpiReplicaSpecs.Launcher.template")
    for n, container in enumerate(template.view.spec.containers):
        where = (*path, "spec", "containers", n)
        if any(one.name == RSH_AGENT and SCRIPT in (one.value or "") for one in container.env):
            note = f"{RSH_AGENT} is left out: Open MPI starts ranks by SSH"
            yield FieldReport((*where, "env"), CHANGED, "env", note)
        if any(SCRIPT in word for word in (*container.command, *container.args)):
            note = f"it names {SCRIPT}, which is not there any more"
            remedy = "remove `-mca plm_rsh_agent /etc/mpi/kubexec.sh`; ranks are started by SSH"
            yield FieldReport((*where, "command"), CHANGED, "command", note, remedy)


def worker_reports(template: PodTemplate, path: Path) -> Iterator[FieldReport]:
    note = "ranks are started by SSH, not by kubectl exec"
    remedy = "check that the image has an SSH server (sshd)"
    yield FieldReport(path, CHANGED, "spec.mpiReplicaSpecs.Worker.template", note, remedy)
    spec = without_nulls(template.content).get("spec") or {}
    for container in (spec.get("containers") or ())[:1]:
        if sleeps(container):
            note = "left out, so that the worker runs an SSH server instead of sleeping"
            yield FieldReport((*path, "spec", "containers", 0, "command"), CHANGED, note=note)


def names_script(variable: Object) -> bool:
    return variable.get("name") == RSH_AGENT and SCRIPT in str(variable.get("value"))


def sleeps(container: Object) -> bool:
    words: Sequence[str] = [*(container.get("command") or ()), *(container.get("args") or ())]
    plain = " ".join(words).split()
    if plain[:1] and plain[0].rpartition("/")[2] in ("sh", "bash") and plain[1:2] == ["-c"]:
        plain = plain[2:]
    return len(plain) == 2 and plain[0].rpartition("/")[2] in ("sleep", "tail")
