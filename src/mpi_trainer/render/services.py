"""The headless Service `<job>`: it gives every pod of the job a name in DNS.

Names are published before pods are ready: MPI daemons connect back to a launcher that is ready
only once they have, and a worker that waits for its own name would wait for itself.
"""

from __future__ import annotations

from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_OPERATOR, MPI_OPERATOR
from mpi_trainer.render import names
from mpi_trainer.render.frame import Frame, Object


def service(frame: Frame) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": frame.plain_metadata(names.service(frame.owner.metadata.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {LABEL_OPERATOR: MPI_OPERATOR, LABEL_JOB: frame.owner.metadata.name},
        },
    }
