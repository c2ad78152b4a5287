"""A job as a short program of the SDK. Pure."""

from __future__ import annotations

import ast
import pprint
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpi_trainer.api.kinds.mpijob import OPEN_MPI
from mpi_trainer.api.kinds.runtime import CLUSTER
from mpi_trainer.api.kinds.trainjob import TrainJob as TrainJobKind
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.sdk.job.equivalents.manifest import comparable_trainjob
from mpi_trainer.sdk.job.equivalents.words import Words
from mpi_trainer.sdk.job.specs import LOCAL_IMAGE, ResourceRequirements
from mpi_trainer.sdk.job.trainjob import TrainJob

_MODULE = "openshift_ai_sdk.training"
_CLASSES = ("ResourceRequirements", "RunPolicy", "SchedulingPolicy", "VolumeMount")
Arguments = dict[str, Any]


def of_mpijob(words: Words | None, text: str) -> str:
    """By what a job is made of; else by its manifest."""
    if words is None or not words.plain or words.new.as_is:
        return _whole("MPIJob", text)
    return _program("MPIJob", dict(_mpijob_arguments(words)))


def of_trainjob(job: TrainJobKind, text: str) -> str:
    given = _trainjob_arguments(job)
    made = decode(TrainJobKind, TrainJob(**given).to_dict()).value
    same = comparable_trainjob(made) == comparable_trainjob(job)
    return _program("TrainJob", given) if same else _whole("TrainJob", text)


def _mpijob_arguments(words: Words) -> Iterator[tuple[str, Any]]:
    new = words.new
    yield "name", new.name
    yield "namespace", new.namespace
    yield "workers", new.workers
    yield "slots", new.slots or 1
    if new.image != LOCAL_IMAGE:
        yield "image", new.image
    yield "command", [*new.command]
    for name, needs in (
        ("resources", new.resources),
        ("launcher_resources", new.launcher_resources),
    ):
        if needs != ResourceRequirements():
            yield name, needs
    if new.env:
        yield "env", dict(new.env)
    if new.volumes:
        yield "volume_mounts", [*new.volumes]
    if new.node_selector:
        yield "node_selector", dict(new.node_selector)
    if new.implementation != OPEN_MPI:
        yield "mpi", new.implementation
    yield "run_policy", new.run_policy


def _trainjob_arguments(job: TrainJobKind) -> Arguments:
    """What the arguments have words for; whether that is all is seen in what they make."""
    trainer, ref = job.trainer, job.spec.runtime_ref
    limits = (trainer.resources_per_node or {}).get("limits")
    given: Arguments = {
        "name": job.name,
        "runtime": ref.name,
        "namespace": job.namespace,
        "num_nodes": trainer.num_nodes,
        "num_proc_per_node": trainer.num_proc_per_node,
        "image": trainer.image,
        "command": _words(trainer.command),
        "args": _words(trainer.args),
        "env": {str(one.get("name")): _meant(str(one.get("value", ""))) for one in trainer.env},
        "resources": _resources(limits if isinstance(limits, Mapping) else {}),
    }
    if (ref.kind or CLUSTER) != CLUSTER:
        given["runtime_kind"] = ref.kind
    return {
        key: value
        for key, value in given.items()
        if value not in (None, {}, ResourceRequirements())
    }


def _words(given: tuple[str, ...] | None) -> list[str] | None:
    return None if given is None else [*map(_meant, given)]


def _meant(text: str) -> str:
    return text.replace("$$", "$")


def _resources(limits: Mapping[str, Any]) -> ResourceRequirements:
    rest = dict(limits)
    gpus = rest.pop("nvidia.com/gpu", 0)
    return ResourceRequirements(
        cpu=rest.pop("cpu", None),
        memory=rest.pop("memory", None),
        gpu=int(gpus) if str(gpus).isdecimal() else 0,
        other=rest,
    )


def _program(name: str, given: Arguments) -> str:
    lines = "".join(f"    {key}={_code(value)},\n" for key, value in given.items())
    used = [one for one in _CLASSES if f"{one}(" in lines]
    imports = ", ".join([name, *used])
    return f"from {_MODULE} import {imports}\n\njob = {name}(\n{lines})\njob.create()\n"


def _whole(name: str, text: str) -> str:
    written = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    source = f'"""\\\n{written}"""'
    if ast.literal_eval(source) != text:  # such as a lone carriage return
        source = repr(text)
    made = f"job = {name}.from_manifest(\n    {source}\n)"
    return f"from {_MODULE} import {name}\n\n{made}\njob.create()\n"


def _code(value: Any) -> str:
    """Python for a value: plain data, lists of values, and values of ours."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(type(value))
        said = [
            f"{field.name}={_code(held)}"
            for field in fields
            if (held := getattr(value, field.name)) != field.default and held not in (None, {}, "")
        ]
        return f"{type(value).__name__}({', '.join(said)})"
    if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        return f"[{', '.join(map(_code, value))}]"
    return pprint.pformat(value, width=88, sort_dicts=False).replace("\n", "\n    ")
