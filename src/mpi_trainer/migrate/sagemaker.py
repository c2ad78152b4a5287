"""SageMaker CreateTrainingJob with MPI → MPIJob (MIG-2).

The folders and variables that SageMaker's containers read (`/opt/ml`, `SM_…`) are there again; what
SageMaker moved between them and S3 is left to volumes. Danger: a request without MPI is refused,
since nothing says how its processes would find each other.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mpi_trainer.api.errors import INVALID, NOT_SUPPORTED, REQUIRED, FieldError, Path
from mpi_trainer.api.spelling import nearest
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.migrate import instances, sagemaker_fields
from mpi_trainer.migrate.cloud_job import CloudJob, Mount, finished, kubernetes_name
from mpi_trainer.migrate.instances import Instances
from mpi_trainer.migrate.report import Converted
from mpi_trainer.migrate.sagemaker_kinds import Request

MARKS: Final = frozenset(
    ("TrainingJobName", "AlgorithmSpecification", "ResourceConfig", "HyperParameters", "RoleArn")
)
ML: Final = "/opt/ml"
CODE: Final = f"{ML}/code"
ENABLED, PROCESSES = "sagemaker_mpi_enabled", "sagemaker_mpi_num_of_processes_per_host"
OPTIONS, PROGRAM = "sagemaker_mpi_custom_mpi_options", "sagemaker_program"
_OWN = "sagemaker_"
_DEBUG = "--NCCL_DEBUG"
_COUNT = re.compile(r"[1-9][0-9]{0,5}")
_HYPER: Path = ("HyperParameters",)
_RESOURCES: Path = ("ResourceConfig",)


def is_request(data: Mapping[str, Any]) -> bool:
    return len(MARKS & data.keys()) >= 2


def to_mpijob(data: Mapping[str, Any], table: Instances) -> Converted:
    """Never raises for what a user can write."""
    name = data.get("TrainingJobName")
    made = Converted("CreateTrainingJob", "sagemaker", str(name or ""))
    found = decode(Request, data)
    if found.errors:
        return replace(made, errors=found.errors)
    request = found.value
    errors = tuple(_errors(request, table))
    if errors:
        return replace(made, errors=errors)
    job = _job(request, table)
    told = list(sagemaker_fields.reports(request, data, job))
    return finished(made, data, job, told)


def parameters(request: Request) -> dict[str, str]:
    """Each as the program sees it: SageMaker's own SDK writes them as JSON."""
    return {name: _plain(value) for name, value in request.hyper_parameters.items()}


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if text[:1] == '"' and text[-1:] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text


def _errors(request: Request, table: Instances) -> Iterator[FieldError]:
    if not request.training_job_name:
        rule = "a job must have a name"
        yield FieldError(("TrainingJobName",), REQUIRED, rule=rule, remedy="add it")
    if not request.algorithm_specification.training_image:
        path: Path = ("AlgorithmSpecification", "TrainingImage")
        rule = "an algorithm of SageMaker's own has no image that runs elsewhere"
        yield FieldError(path, REQUIRED, rule=rule, remedy="name the image that trains")
    given = parameters(request)
    if given.get(ENABLED, "").lower() != "true":
        rule = "only jobs that SageMaker starts with MPI become MPIJobs"
        remedy = 'set it to "true" if the program is one of MPI; else write a torch TrainJob'
        yield FieldError((*_HYPER, ENABLED), REQUIRED, rule=rule, remedy=remedy)
    if PROCESSES in given and not _COUNT.fullmatch(given[PROCESSES]):
        rule = "must be a whole number from 1 to 999999"
        remedy = "set it to the ranks of a machine"
        yield FieldError((*_HYPER, PROCESSES), INVALID, given[PROCESSES], rule, remedy)
    try:
        shlex.split(given.get(OPTIONS, ""))
    except ValueError:
        rule = "must be options as a shell reads them"
        yield FieldError((*_HYPER, OPTIONS), INVALID, given[OPTIONS], rule, "close the quotes")
    yield from _machine_errors(request, table)


def _machine_errors(request: Request, table: Instances) -> Iterator[FieldError]:
    machines = request.resource_config
    if machines.instance_groups:
        rule = "machines of several types have no counterpart: all workers of an MPIJob are alike"
        remedy = "set InstanceType and InstanceCount instead"
        yield FieldError((*_RESOURCES, "InstanceGroups"), NOT_SUPPORTED, rule=rule, remedy=remedy)
        return
    count = machines.instance_count
    if count is not None and count < 1:
        remedy = "set it to the number of machines"
        yield FieldError(
            (*_RESOURCES, "InstanceCount"), INVALID, count, "must be 1 or more", remedy
        )
    kind = machines.instance_type
    if kind not in table:
        meant = nearest(kind, table)
        guess = f"did you mean `{meant}`? Else " if meant else ""
        remedy = f"{guess}give its resources with `--instances FILE`: `{kind or 'ml.p4d.24xlarge'}:"
        remedy += " {cpu: 96, memory: 1152Gi, nvidia.com/gpu: 8}`"
        rule = "is not in the table of machine types" if kind else "must be set"
        problem = NOT_SUPPORTED if kind else REQUIRED
        yield FieldError((*_RESOURCES, "InstanceType"), problem, kind, rule, remedy)


def _job(request: Request, table: Instances) -> CloudJob:
    machine = table[request.resource_config.instance_type]
    given = parameters(request)
    slots = int(given.get(PROCESSES) or instances.gpus(machine) or 1)
    count = request.resource_config.instance_count or 1
    retries = request.retry_strategy
    return CloudJob(
        name=kubernetes_name(request.training_job_name, "job"),
        image=request.algorithm_specification.training_image,
        command=_command(request, given, count * slots),
        machines=count,
        slots=slots,
        machine=machine,
        env={**_variables(request, machine), **_environment(request)},
        mounts=tuple(_mounts(request)),
        folder=CODE if PROGRAM in given else "",
        deadline=request.stopping_condition.max_runtime_in_seconds,
        tries=retries.maximum_retry_attempts if retries else None,
    )


def _environment(request: Request) -> dict[str, str]:
    return {name: _plain(value) for name, value in request.environment.items()}


def _command(request: Request, given: Mapping[str, str], ranks: int) -> tuple[str, ...]:
    """As SageMaker's training toolkit calls it; an own entry point is called with MPI before it."""
    algorithm = request.algorithm_specification
    program = given.get(PROGRAM, "")
    if algorithm.container_entrypoint:
        return (*algorithm.container_entrypoint, *algorithm.container_arguments)
    start = ("mpirun", "-n", str(ranks), *_options(given.get(OPTIONS, "")))
    if not program:
        return (*start, "train", *algorithm.container_arguments)
    words = tuple(
        word
        for name, value in given.items()
        if not name.startswith(_OWN)
        for word in (f"--{name}", value)
    )
    how: tuple[str, ...] = ("python", "-m", "mpi4py", f"{CODE}/{program}")
    if program.endswith(".sh"):
        how = ("/bin/sh", f"{CODE}/{program}")
    return (*start, *how, *words)


def _options(text: str) -> Iterator[str]:
    """`--NCCL_DEBUG` is one of the training toolkit's own, and none of mpirun."""
    words = iter(shlex.split(text))
    for word in words:
        name, sign, value = word.partition("=")
        if name == _DEBUG:
            yield from ("-x", f"NCCL_DEBUG={value if sign else next(words, 'INFO')}")
        else:
            yield word


def _variables(request: Request, machine: Mapping[str, Any]) -> dict[str, str]:
    """Those that programs for SageMaker read most."""
    channels = {
        f"SM_CHANNEL_{one.channel_name.upper().replace('-', '_')}": _input(one.channel_name)
        for one in request.input_data_config
    }
    return {
        "SM_MODEL_DIR": f"{ML}/model",
        "SM_OUTPUT_DATA_DIR": f"{ML}/output/data",
        "SM_NUM_GPUS": str(instances.gpus(machine)),
        **channels,
    }


def _input(channel: str) -> str:
    return f"{ML}/input/data/{channel}"


def _mounts(request: Request) -> Iterator[Mount]:
    """A claim for each channel; one for what the job leaves, one for its checkpoints."""
    for one in request.input_data_config:
        claim = kubernetes_name(one.channel_name, "channel")
        yield Mount(f"input-{claim}"[:63].strip("-"), _input(one.channel_name), claim, True)
    name = kubernetes_name(request.training_job_name)
    if request.output_data_config is not None:
        yield Mount("model", f"{ML}/model", f"{name}-model")
    yield Mount("output", f"{ML}/output/data")
    if request.checkpoint_config is not None:
        path = request.checkpoint_config.local_path or f"{ML}/checkpoints"
        yield Mount("checkpoints", path, f"{name}-checkpoints")
