"""The trainer's kinds by name and version, for whoever must know them without reading any."""

from __future__ import annotations

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"

TRAIN_JOB = "TrainJob"
TRAINING_RUNTIME = "TrainingRuntime"
CLUSTER_TRAINING_RUNTIME = "ClusterTrainingRuntime"
RUNTIMES = (CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME)
