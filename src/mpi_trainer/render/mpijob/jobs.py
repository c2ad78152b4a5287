"""The launcher's Job `<job>-launcher`: one pod, one try.

The Job is there because upstream's is, and so that a launcher pod that vanishes is noticed; tries,
deadline and life after the end belong to the MPIJob, not to it. Its pod keeps a finalizer until
its end has been recorded. Danger: whoever removes the controller must release that finalizer.
"""

from __future__ import annotations

from mpi_trainer.api.kinds.annotations import ATTEMPT
from mpi_trainer.api.kinds.labels import LABEL_JOB, LABEL_OPERATOR
from mpi_trainer.layout.model import PodLayout
from mpi_trainer.render import agent_scripts, names
from mpi_trainer.render.containers import main_container
from mpi_trainer.render.frame import Frame, Object
from mpi_trainer.render.pods import pod


def launcher_job(layout: PodLayout, frame: Frame) -> Object:
    template = pod(layout, frame)
    template["metadata"]["finalizers"] = [names.EVIDENCE]
    main = main_container(template["spec"], layout.container)
    if layout.quiet_mark and not main.get("readinessProbe"):
        main["readinessProbe"] = _not_stuck(layout.quiet_mark)
    labels = {
        **frame.names.labels,
        LABEL_OPERATOR: layout.labels[LABEL_OPERATOR],
        LABEL_JOB: layout.labels[LABEL_JOB],
    }
    annotations = {ATTEMPT: str(frame.facts.attempt), **agent_scripts.mark(layout)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": frame.metadata(layout.name, labels=labels, annotations=annotations),
        "spec": {"backoffLimit": 0, "podReplacementPolicy": "Failed", "template": template},
    }


def _not_stuck(mark: str) -> Object:
    """Not ready while the agent's mark is there: how the agent tells, without any right, that its
    ranks seem to be stuck. Nothing else reads it, and names of such pods are published too."""
    return {
        "exec": {"command": ["/bin/sh", "-c", f"test ! -e {mark}"]},
        "periodSeconds": 60,
        "timeoutSeconds": 10,
        "failureThreshold": 1,
    }
