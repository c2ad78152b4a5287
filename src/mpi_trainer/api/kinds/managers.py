"""Who manages a job (`managedBy`), or a part of a TrainJob (`runtimePatches[].manager`)."""

from __future__ import annotations

MPI_OPERATOR = "kubeflow.org/mpi-operator"
TRAINJOB_CONTROLLER = "trainer.kubeflow.org/trainjob-controller"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""another cluster runs the job"""
KUEUE = "kueue.x-k8s.io/manager"
"""of runtime patches"""
SDK = "mpi-trainer.opendatahub.io/sdk"
"""of runtime patches"""

MPIJOB_MANAGERS = (MPI_OPERATOR, MULTIKUEUE)
TRAINJOB_MANAGERS = (TRAINJOB_CONTROLLER, MULTIKUEUE)
