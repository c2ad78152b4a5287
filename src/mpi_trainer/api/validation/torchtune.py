"""What torchtune cannot do, as upstream refuses it."""

from __future__ import annotations

from mpi_trainer.api.effective import torchtune
from mpi_trainer.api.effective.combine import Effective, devices
from mpi_trainer.api.effective.torchtune import Devices
from mpi_trainer.api.errors import FORBIDDEN, INVALID, NOT_SUPPORTED, FieldError, Path
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.validation import rules

_NAME: Path = ("spec", "runtimeRef", "name")
_TRAINER: Path = ("spec", "trainer")


def errors(job: TrainJob, together: Effective) -> rules.Errors:
    if not torchtune.is_used(job):
        return
    name = job.spec.runtime_ref.name
    model = torchtune.model(name)
    if model not in torchtune.MODELS:
        rule = "torchtune finds its model by the runtime's name, and this one says none that it has"
        remedy = "choose a torchtune runtime, or name a recipe and its settings after `tune run`"
        yield FieldError(_NAME, NOT_SUPPORTED, name, rule, remedy)
    nodes = job.trainer.num_nodes or 1
    if nodes > 1 and model != torchtune.SEVERAL_NODES:
        rule = f"{model or 'this model'} is trained on one node"
        yield FieldError((*_TRAINER, "numNodes"), INVALID, nodes, rule, "set it to 1")
    elif nodes > 1 and torchtune.has_adapters(job):
        rule = "torchtune has no LoRA on several nodes"
        remedy = "set it to 1, or remove the LoRA settings"
        yield FieldError((*_TRAINER, "numNodes"), INVALID, nodes, rule, remedy)
    if torchtune.is_quantized(job) and nodes == 1:
        yield from _quantized(name, model, devices(together))
    for n, argument in enumerate(job.trainer.args or ()):
        key = argument.split("=", 1)[0]
        if key in torchtune.FIXED:
            path = (*_TRAINER, "args", n)
            yield FieldError(path, FORBIDDEN, key, "the runtime sets this", "remove it")


def _quantized(name: str, model: str, found: Devices) -> rules.Errors:
    if model == torchtune.QWEN:
        rule = f"{model} has no recipe for QLoRA"
        yield FieldError(_NAME, INVALID, name, rule, "remove model.quantize_base")
    if model in torchtune.SMALL and not found.one:
        rule = f"QLoRA of {model} runs on one device"
        remedy = "set it to 1, or ask for one GPU"
        yield FieldError((*_TRAINER, "numProcPerNode"), INVALID, "", rule, remedy)
