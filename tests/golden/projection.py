"""A Layout as YAML that a person can read and check line by line, and the writer of all goldens.

Everything that is in a Layout is in its projection but the templates, which the test compares with
the job file itself, and the agent's scripts; what is the same in all workers is written once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from mpi_trainer.api.yaml import load
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.layout.agent import paths
from mpi_trainer.layout.agent.scripts import HOSTS, SETTINGS
from mpi_trainer.layout.hosts import discover_hosts
from mpi_trainer.layout.model import File, Layout, PodLayout
from mpi_trainer.layout.mpijob import layout

FOLDER = Path(__file__).parent
CASES = sorted(path.parent for path in FOLDER.glob("*/in.yaml"))


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as block scalars."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def read(case: Path) -> tuple[MPIJob, str]:
    """The job of a case, in `default` where it names no namespace, and its cluster's domain."""
    [job] = load.jobs((case / "in.yaml").read_text(), "in.yaml").jobs
    metadata = msgspec.structs.replace(job.metadata, namespace=job.namespace or "default")
    domain = case / "cluster-domain"
    given = domain.read_text().strip() if domain.exists() else ""
    return msgspec.structs.replace(job, metadata=metadata), given


def projection(case: Path) -> str:
    job, domain = read(case)
    made = layout(job, domain)
    running = [pod.name for pod in made.workers]
    content = {**_layout(made), "discovered when all run": discover_hosts(job, running, domain)}
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=100)


def _layout(made: Layout) -> dict[str, Any]:
    shared = [_shared(pod) for pod in made.workers]
    assert all(one == shared[0] for one in shared), "workers differ in more than their names"
    return {
        "name": made.name,
        "namespace": made.namespace,
        "implementation": made.implementation,
        "slots": made.slots,
        "ranks": made.ranks,
        "agent": f"{made.agent}, ssh {made.ssh}" + f" ({made.agent_why})" * bool(made.agent_why),
        "hosts": [f"{h.pod} at {h.address}, slots {h.slots}" for h in made.hosts],
        "hostfile": made.hostfile,
        "launcher": {**_own(made.launcher), **_shared(made.launcher)},
        "every worker": shared[0] if shared else None,
        "workers": [_own(pod) for pod in made.workers],
    }


def _own(pod: PodLayout) -> dict[str, Any]:
    return {
        "name": pod.name,
        "index": pod.index,
        "hostname": pod.hostname,
        "labels": dict(pod.labels),
    }


def _shared(pod: PodLayout) -> dict[str, Any]:
    return {
        "role": pod.role,
        "subdomain": pod.subdomain,
        "env": [{name: value} for name, value in pod.env],
        "command": list(pod.command),
        "files": [{"path": f.path, "mode": _octal(f.mode), "text": _shown(f)} for f in pod.files],
        "keys": [f"{k.path} is the {k.part} key, mode {_octal(k.mode)}" for k in pod.keys],
        "scratch": list(pod.scratch),
        "prepare": list(pod.prepare),
        "overlays": [f"{o.source} over {o.target}" for o in pod.overlays],
        "ready when port answers": pod.ready_port or None,
    }


def _shown(file: File) -> str:
    """Scripts are the same in every job: who wants to read them reads them where they are."""
    if file.path.startswith(f"{paths.FOLDER}/") and file.path not in (HOSTS, SETTINGS):
        return "(a script of the agent)"
    return file.text


def _octal(mode: int | None) -> str:
    return "left open" if mode is None else f"{mode:04o}"


if __name__ == "__main__":
    for case in CASES:
        (case / "layout.yaml").write_text(projection(case))
