"""torchtune in a torch runtime: `tune run` alone means the recipe that fits the job.

The model is in the runtime's name (`torchtune-llama3.2-1b`), LoRA in the job's arguments, the
number of devices in its resources; where its files lie is the runtime's word. Upstream's rules, to
the letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.trainjob import TrainJob

ENTRY: Final = ("tune", "run")
SEVERAL_NODES: Final = "llama3_3/70B"
QWEN: Final = "qwen2_5/1.5B"
SMALL: Final = ("llama3_2/1B", "llama3_2/3B")
MODELS: Final = (*SMALL, SEVERAL_NODES, QWEN)
FIXED: Final = (
    "output_dir",
    "tokenizer.path",
    "checkpointer.checkpoint_dir",
    "tokenizer.merges_file",
)
"""settings that are the runtime's, not the job's"""
_QUANTIZED, _LORA, _FULL = "qlora", "lora", "full"


class Devices(msgspec.Struct, frozen=True):
    """`processes` of a node; 0: as many as it has GPUs."""

    nodes: int
    processes: int
    gpus: int

    @property
    def one(self) -> bool:
        return self.nodes == 1 and (self.processes == 1 or self.gpus == 1)

    @property
    def several(self) -> bool:
        return self.nodes > 1 or self.processes > 1 or (not self.processes and self.gpus > 1)


def is_used(job: TrainJob) -> bool:
    """Whether a job of a torch runtime leaves the recipe to the controller."""
    return job.trainer.command == ENTRY


def model(runtime: str) -> str:
    """Empty where the runtime's name says none."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def method(job: TrainJob) -> str:
    """What is trained: all weights, or adapters beside them."""
    arguments = job.trainer.args or ()
    if _is_set(arguments, "model.quantize_base") and not _is_set(arguments, "model.use_dora"):
        return _QUANTIZED
    if any("model.lora_attn_modules" in one for one in arguments):
        return _LORA
    return _FULL


def is_quantized(job: TrainJob) -> bool:
    return method(job) == _QUANTIZED


def has_adapters(job: TrainJob) -> bool:
    return method(job) != _FULL


def command(
    job: TrainJob, devices: Devices, container: Mapping[str, Any], address: str
) -> list[str]:
    """`tune run` with all that it needs; `container` is the runtime's own, `address` the first
    node's."""
    meeting = [f"--rdzv_endpoint={address}"] if devices.several else []
    recipe, config = _recipe(job, devices)
    kept = [one for one in container.get("command") or () if one.split("=")[0] in FIXED]
    return [*ENTRY, *meeting, recipe, "--config", config, *kept]


def _recipe(job: TrainJob, devices: Devices) -> tuple[str, str]:
    kind = method(job) if devices.nodes == 1 else _FULL
    suffix = f"_{kind}_single_device" if devices.one else f"_{kind}"
    if devices.nodes > 1:
        suffix = "_full_multinode"
    family = "full" if kind == _FULL else "lora"
    place = "single_device" if devices.one else "distributed"
    return f"{family}_finetune_{place}", f"{model(job.spec.runtime_ref.name)}{suffix}"


def _is_set(arguments: Sequence[str], name: str) -> bool:
    pairs = (one.partition("=") for one in arguments)
    return any(name in key and value.strip().lower() == "true" for key, _, value in pairs)
