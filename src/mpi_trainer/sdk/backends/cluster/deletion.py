"""A job and all that it has made, gone: asked for once, and waited for.

Foreground deletion: the job's object is the last to go, so its end is the end of everything. Two
who delete at once both see it end. Guarantee: never deletes a later job of the same name.
"""

from __future__ import annotations

from contextlib import aclosing

from mpi_trainer.kube import requests
from mpi_trainer.kube.errors import Conflict, NotFound
from mpi_trainer.kube.resources import Resource
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.backends.cluster.connections import Home


async def delete(home: Home, resource: Resource, key: Key, uid: str) -> None:
    """Returns when nothing of that very job is left."""
    request = requests.delete(resource, key.namespace, key.name, uid=uid, propagation="Foreground")
    try:
        await home.call(request, None)
    except (NotFound, Conflict):
        # Somebody was quicker, and another job may bear the name by now.
        return
    async with aclosing(home.watches.follow(resource, key)) as states:
        async for found in states:
            if found is None or found["metadata"]["uid"] != uid:
                return
