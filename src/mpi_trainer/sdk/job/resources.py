"""What a worker needs of a node: CPUs, memory, GPUs.

Requests and limits are the same, so that a pod gets exactly what it was promised. A GPU is
`nvidia.com/gpu` unless another device is named.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

NVIDIA = "nvidia.com/gpu"

Amount = str | int | float


class ResourceRequirements(msgspec.Struct, frozen=True):
    """The resources of one worker.

    cpu: CPUs, such as `4` or `"500m"`. memory: such as `"16Gi"`. gpu: whole GPUs; a worker gets
    as many ranks as GPUs unless `slots` says otherwise. gpu_type: the device's resource name.
    other: any more resources by name, such as `{"rdma/ib": 1}`.
    """

    cpu: Amount | None = None
    memory: Amount | None = None
    gpu: int = 0
    gpu_type: str = NVIDIA
    other: Mapping[str, Amount] = {}


def amounts(needs: ResourceRequirements) -> dict[str, Amount]:
    """By resource name, as a container asks for them."""
    named = {"cpu": needs.cpu, "memory": needs.memory, needs.gpu_type: needs.gpu or None}
    return {**{k: v for k, v in named.items() if v is not None}, **needs.other}
