"""The runtimes that a TrainJob can name: of a namespace and of the cluster, or the shipped ones."""

from __future__ import annotations

from typing import Any

import msgspec

from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.cli import target
from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Forbidden
from mpi_trainer.kube.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES


class _List(msgspec.Struct, frozen=True):
    items: tuple[dict[str, Any], ...] | None = None


def found(namespace: str) -> list[Runtime]:
    """By name; one of the namespace before the cluster's of the same name."""
    if not target.on_cluster(target.said()):
        from mpi_trainer.local.jobs import shipped_runtimes

        return [
            each for name in shipped_runtimes.names() if (each := shipped_runtimes.runtime(name))
        ]
    return sorted(_served(namespace), key=lambda r: (r.name, r.kind != TRAINING_RUNTIMES.kind))


def _served(namespace: str) -> list[Runtime]:
    from mpi_trainer.kube.oneshot import OneShot
    from mpi_trainer.sdk.backends.cluster.errors import told

    runtimes: list[Runtime] = []
    with OneShot(target.config()) as server, told():
        for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
            request = requests.list_page(resource, namespace, limit=0)
            try:
                page = server.call(request, _List)
            except Forbidden:
                if resource.namespaced:
                    continue
                raise
            for item in page.items or ():
                whole = {**item, "apiVersion": resource.api_version, "kind": resource.kind}
                runtimes.append(decode(Runtime, whole).value)
    return runtimes
