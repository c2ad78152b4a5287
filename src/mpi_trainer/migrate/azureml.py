"""Azure ML command job with `distribution: {type: mpi}` → MPIJob (MIG-2).

`${{inputs.name}}` in the command is the value, or a folder where a volume is mounted. Danger: an
environment of Azure ML is a name there and no image; only one with an image can be taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mpi_trainer.api.errors import INVALID, NOT_SUPPORTED, REQUIRED, FieldError, Path
from mpi_trainer.api.kinds.meta import Int32, PartlyRead
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.migrate import azureml_fields, instances
from mpi_trainer.migrate.cloud_job import CloudJob, Mount, finished, kubernetes_name
from mpi_trainer.migrate.instances import Instances
from mpi_trainer.migrate.report import Converted, Object

CODE: Final = "/mnt/azureml/code"
INPUTS, OUTPUTS = "/mnt/azureml/inputs", "/mnt/azureml/outputs"
_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]{1,200})\s*\}\}")
_DURATION = re.compile(r"\d{1,9}")

Text = str | int | float | bool


class Distribution(PartlyRead, frozen=True, rename=None):
    type: str = ""
    process_count_per_instance: Int32 | None = None


class Resources(PartlyRead, frozen=True, rename=None):
    instance_count: Int32 | None = None
    instance_type: str = ""
    shm_size: str = ""


class Limits(PartlyRead, frozen=True, rename=None):
    timeout: Int32 | None = None


class Job(PartlyRead, frozen=True, rename=None):
    """`inputs` and `outputs` are read by hand: a value, or a mapping with a path."""

    name: str = ""
    display_name: str = ""
    experiment_name: str = ""
    description: str = ""
    command: str = ""
    code: str = ""
    environment: Any = None
    environment_variables: Mapping[str, Text] = {}
    inputs: Mapping[str, Any] = {}
    outputs: Mapping[str, Any] = {}
    distribution: Distribution | None = None
    resources: Resources = Resources()
    limits: Limits = Limits()


def is_job(data: Mapping[str, Any]) -> bool:
    """By its schema, or by what no other file has."""
    schema = data.get("$schema")
    if isinstance(schema, str) and "azureml" in schema:
        return "commandJob" in schema
    return "command" in data and ("distribution" in data or data.get("type") == "command")


def to_mpijob(data: Mapping[str, Any], table: Instances) -> Converted:
    """Never raises for what a user can write."""
    named = data.get("name") or data.get("display_name") or data.get("experiment_name")
    made = Converted("commandJob", "azureml", str(named or ""))
    found = decode(Job, data)
    if found.errors:
        return replace(made, errors=found.errors)
    job = found.value
    errors = tuple(_errors(job, table))
    if errors:
        return replace(made, errors=errors)
    wanted = _job(job, table)
    return finished(made, data, wanted, list(azureml_fields.reports(data, wanted)))


def _errors(job: Job, table: Instances) -> Iterator[FieldError]:
    if not job.command:
        yield FieldError(("command",), REQUIRED, rule="must be set", remedy="add what to run")
    if not _image(job.environment):
        rule = "an environment of Azure ML is no image that a cluster can pull"
        remedy = "write `environment: {image: REGISTRY/IMAGE}`, with what it contains"
        yield FieldError(("environment",), REQUIRED, rule=rule, remedy=remedy)
    kind = job.distribution.type.lower() if job.distribution else ""
    if kind != "mpi":
        rule = "only jobs that Azure ML starts with MPI become MPIJobs"
        remedy = "set it to mpi if the program is one of MPI; else write a torch TrainJob"
        problem = NOT_SUPPORTED if kind else REQUIRED
        yield FieldError(("distribution", "type"), problem, kind, rule, remedy)
    counts: tuple[tuple[Path, int | None], ...] = (
        (("resources", "instance_count"), job.resources.instance_count),
        (("distribution", "process_count_per_instance"), _processes(job)),
    )
    for path, value in counts:
        if value is not None and value < 1:
            yield FieldError(path, INVALID, value, "must be 1 or more", "set it, or remove it")
    machine = job.resources.instance_type
    if machine and instances.named(machine, table) is None:
        remedy = (
            f"give its resources with `--instances FILE`: `{machine}: {{cpu: 24, memory: 220Gi}}`"
        )
        rule = "is not in the table of machine types"
        path = ("resources", "instance_type")
        yield FieldError(path, NOT_SUPPORTED, machine, rule, remedy)
    yield from _expressions(job)


def _expressions(job: Job) -> Iterator[FieldError]:
    known = _values(job)
    for name in dict.fromkeys(_EXPRESSION.findall(job.command)):
        if name not in known:
            rule = f"it names `{name}`, which the job does not have"
            yield FieldError(("command",), INVALID, name, rule, "add it under inputs or outputs")


def _processes(job: Job) -> int | None:
    return job.distribution.process_count_per_instance if job.distribution else None


def _image(environment: object) -> str:
    image = environment.get("image") if isinstance(environment, Mapping) else None
    return image if isinstance(image, str) else ""


def _values(job: Job) -> dict[str, str]:
    """What stands for each expression in the command."""
    found = {}
    for name, given in job.inputs.items():
        value = _literal(given)
        found[f"inputs.{name}"] = f"{INPUTS}/{name}" if value is None else value
    return found | {f"outputs.{name}": f"{OUTPUTS}/{name}" for name in job.outputs}


def _literal(given: object) -> str | None:
    """None where it is data, in a folder."""
    if isinstance(given, Mapping):
        kind = str(given.get("type") or "")
        if kind in ("number", "integer", "boolean", "string"):
            return _text(given.get("value", given.get("default", "")))
        return None
    return _text(given)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _job(job: Job, table: Instances) -> CloudJob:
    machine = instances.named(job.resources.instance_type, table) or {}
    values = _values(job)
    line = _EXPRESSION.sub(lambda found: values[found[1]], job.command)
    notes: Object = {
        f"azureml.com/{field}": text
        for field, text in (
            ("experiment-name", job.experiment_name),
            ("display-name", job.display_name),
            ("description", job.description),
        )
        if text
    }
    return CloudJob(
        name=kubernetes_name(job.name or job.display_name or job.experiment_name or "job"),
        image=_image(job.environment),
        command=("mpirun", "-n", str(_ranks(job, machine)), "bash", "-c", line),
        machines=job.resources.instance_count or 1,
        slots=_slots(job, machine),
        machine=machine,
        env={name: _text(value) for name, value in job.environment_variables.items()},
        mounts=tuple(_mounts(job)),
        folder=CODE if job.code else "",
        shared_memory=_shared_memory(job.resources.shm_size),
        deadline=job.limits.timeout,
        annotations=notes,
    )


def _slots(job: Job, machine: Mapping[str, Any]) -> int:
    return _processes(job) or instances.gpus(machine) or 1


def _ranks(job: Job, machine: Mapping[str, Any]) -> int:
    return (job.resources.instance_count or 1) * _slots(job, machine)


def _mounts(job: Job) -> Iterator[Mount]:
    for name, given in job.inputs.items():
        if _literal(given) is None:
            claim = kubernetes_name(name, "input")
            yield Mount(f"input-{claim}", f"{INPUTS}/{name}", claim, read_only=True)
    for name in job.outputs:
        claim = kubernetes_name(name, "output")
        yield Mount(f"output-{claim}", f"{OUTPUTS}/{name}", claim)


def _shared_memory(size: str) -> str:
    """`16g` as Docker has it is `16Gi` here."""
    if size[-1:].lower() in ("b",):
        size = size[:-1]
    unit = {"k": "Ki", "m": "Mi", "g": "Gi"}.get(size[-1:].lower(), "")
    return f"{size[:-1]}{unit}" if unit else size
