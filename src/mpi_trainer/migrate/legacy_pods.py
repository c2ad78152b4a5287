"""Pods of older MPIJobs, whose ranks were started by `kubectl exec`, as pods reached by SSH.

What belonged to `kubectl exec` goes: workers that only sleep, and the variable that names the
script. Danger: the image must have an SSH server now; no reading of the job shows whether it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile

from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.pods import PodTemplate, without_nulls
from mpi_trainer.migrate.report import CARRIED, CHANGED, FieldReport, Object

RSH_AGENT = "OMPI_MCA_plm_rsh_agent"
SCRIPT = "kubexec.sh"
_SHELLS = ("sh", "bash", "ash", "dash")
_SCRIPT = re.compile("-[a-z]*c")
_ENDS = re.compile(r"[;&\n]")
_PLAIN = re.compile(r"[\w./-]+")
_KEYWORDS = ("--", "while", "until", "do", "exec")
_IDLE = ("true", "false", ":", "done", "wait", "trap", "exit")


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
        if any(one.name != RSH_AGENT and SCRIPT in (one.value or "") for one in container.env):
            note = f"it names {SCRIPT}, which is not there any more"
            remedy = "remove the variable; ranks are started by SSH"
            yield FieldReport((*where, "env"), CHANGED, "env", note, remedy)
        if any(SCRIPT in word for word in (*container.command, *container.args)):
            note = f"it names {SCRIPT}, which is not there any more"
            remedy = "remove `-mca plm_rsh_agent /etc/mpi/kubexec.sh`; ranks are started by SSH"
            yield FieldReport((*where, "command"), CHANGED, "command", note, remedy)


def ssh_report(path: Path) -> FieldReport:
    note = "ranks are started by SSH, not by kubectl exec"
    remedy = "check that the image has an SSH server (sshd)"
    return FieldReport(path, CHANGED, "spec.mpiReplicaSpecs.Worker.template", note, remedy)


def worker_reports(template: PodTemplate, path: Path) -> Iterator[FieldReport]:
    yield ssh_report(path)
    spec = without_nulls(template.content).get("spec") or {}
    for container in (spec.get("containers") or ())[:1]:
        where = (*path, "spec", "containers", 0, "command" if container.get("command") else "args")
        if sleeps(container):
            note = "left out, so that the worker runs an SSH server instead of sleeping"
            yield FieldReport(where, CHANGED, note=note)
        elif (said := _words(container)) and not any("sshd" in word for word in said):
            note = "kept as it is, and does not name sshd"
            remedy = "leave the worker's command out, or start sshd in it: ranks come by SSH"
            yield FieldReport(where, CHANGED, "command", note, remedy)


def names_script(variable: Object) -> bool:
    return variable.get("name") == RSH_AGENT and SCRIPT in str(variable.get("value"))


def sleeps(container: Object) -> bool:
    """Whether it only keeps a pod running: sleep, tail, or a script of nothing else."""
    said = _words(container)
    plain = " ".join(said).split()
    if plain[1:2] and _program(plain[0]) in _SHELLS and _SCRIPT.fullmatch(plain[1]):
        script = " ".join(said).partition(plain[1])[2]
    else:
        script = " ".join(said)
    steps = [_step(one) for one in _ENDS.split(script)]
    return any(one and _rests(one) for one in steps) and all(map(_is_idle, steps))


def _words(container: Object) -> Sequence[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _step(text: str) -> list[str]:
    return [*dropwhile(_KEYWORDS.__contains__, text.split())]


def _rests(words: Sequence[str]) -> bool:
    plain = all(map(_PLAIN.fullmatch, words[1:]))
    return len(words) > 1 and plain and _program(words[0]) in ("sleep", "tail")


def _is_idle(words: Sequence[str]) -> bool:
    return not words or _rests(words) or words[0] in _IDLE
