"""The ConfigMap of a job: the hostfile, the agent's settings, and what else is this job's own.

One for all pods of a job, and none of it is secret from any of them. It is replaced,
and pods that have mounted it read the new one, where the job's size changes while it runs.
"""

from __future__ import annotations

from mpi_trainer.render.frame import Frame, Object

LARGEST = 1024 * 1024
"""bytes of keys and values that the API server takes"""


def config_map(frame: Frame) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": frame.plain_metadata(frame.names.config_map),
        "data": data(frame),
    }


def data(frame: Frame) -> dict[str, str]:
    return {key: file.text for file, key in frame.config_keys.items()}


def size(frame: Frame) -> int:
    return sum(len(key.encode()) + len(text.encode()) for key, text in data(frame).items())
