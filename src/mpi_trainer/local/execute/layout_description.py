"""A Layout for people to read: `odh run --dry-run`. Pure.

Of the job's own templates only the plain variables and the mounts are shown: whoever reads this
has written them, and a value from a Secret must not be printed. What MPI will be given stands
here in full: names, hostfile, variables, files, commands; only the agent's scripts are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mpi_trainer.api.kinds.pods import Container
from mpi_trainer.layout.agent import paths
from mpi_trainer.layout.model import Layout, PodLayout


def description(layout: Layout) -> dict[str, Any]:
    return {
        "name": layout.name,
        "namespace": layout.namespace,
        "implementation": layout.implementation,
        "ranks": layout.ranks,
        "slotsPerWorker": layout.slots,
        "launcher": _pod(layout.launcher),
        "workers": [_pod(worker) for worker in layout.workers],
    }


def _pod(pod: PodLayout) -> dict[str, Any]:
    container = next(iter(pod.template.view.spec.containers), Container())
    own = {v.name: v.value or "" for v in container.env if v.value_from is None}
    facts = {
        "name": pod.name,
        "hostname": f"{pod.hostname}.{pod.subdomain}",
        "command": list(pod.command),
        "env": {**own, **dict(pod.env)},
        "labels": dict(pod.labels),
        "mounts": {mount.mount_path: mount.name for mount in container.volume_mounts},
        "files": {f.path: f.text for f in pod.files if not f.path.startswith(f"{paths.FOLDER}/")},
        "keys": list(_folders(key.path for key in pod.keys)),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _folders(paths: Iterable[str]) -> dict[str, None]:
    """Each folder once, in order."""
    return dict.fromkeys(path.rpartition("/")[0] for path in paths)
