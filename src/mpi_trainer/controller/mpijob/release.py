"""Releasing launcher pods: our finalizer is removed, so that they can be deleted.

Before the controller is uninstalled all are released: afterwards nobody would do it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mpi_trainer.api.kinds.labels import LABEL_OPERATOR, LABEL_ROLE, MPI_OPERATOR
from mpi_trainer.controller.objects import Pod
from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.resources import PODS
from mpi_trainer.render import names
from mpi_trainer.runtime.partial import Meta

log = logging.getLogger(__name__)


async def release_all(client: Client, namespaces: Sequence[str]) -> int:
    """The exit code. May be repeated."""
    labels = f"{LABEL_OPERATOR}={MPI_OPERATOR},{LABEL_ROLE}=launcher"
    count = 0
    for namespace in namespaces or ("",):
        async for page in lists.pages(client, PODS, Pod, namespace=namespace, labels=labels):
            for pod in page.items:
                if names.EVIDENCE in pod.metadata.finalizers:
                    await _release(client, pod.metadata)
                    count += 1
    log.info("released %d launcher pods", count)
    return 0


async def _release(client: Client, meta: Meta) -> None:
    try:
        await client.call(release_request(meta), None)
    except NotFound:
        return


def release_request(meta: Meta) -> requests.Request:
    """By name, since the Job controller takes its own finalizer away at the same moment. Who set
    which field of an ended pod serves nobody, and is half of what is stored of it."""
    gone = {
        "uid": meta.uid,
        "$deleteFromPrimitiveList/finalizers": [names.EVIDENCE],
        "managedFields": [{}],
    }
    return requests.patch(PODS, meta.namespace, meta.name, {"metadata": gone}, "strategic")
