"""A Layout for people to read: `odh run --dry-run`. Pure.

The job's own templates are left out: whoever reads this has written them. What MPI will be given
stands here in full: hosts, hostfile, variables, files, commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpi_trainer.layout.model import Layout, PodLayout


def description(layout: Layout) -> dict[str, Any]:
    return {
        "name": layout.name,
        "namespace": layout.namespace,
        "implementation": layout.implementation,
        "ranks": layout.ranks,
        "slotsPerWorker": layout.slots,
        "hostfile": layout.hostfile,
        "launcher": _pod(layout.launcher),
        "workers": [_pod(worker) for worker in layout.workers],
    }


def _pod(pod: PodLayout) -> dict[str, Any]:
    facts = {
        "name": pod.name,
        "hostname": f"{pod.hostname}.{pod.subdomain}",
        "command": list(pod.command),
        "env": dict(pod.env),
        "labels": dict(pod.labels),
        "files": {file.path: file.text for file in pod.files},
        "keys": list(_folders(key.path for key in pod.keys)),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _folders(paths: Iterable[str]) -> dict[str, None]:
    """Each folder once, in order."""
    return dict.fromkeys(path.rpartition("/")[0] for path in paths)
