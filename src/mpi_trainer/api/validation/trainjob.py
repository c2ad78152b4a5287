"""A TrainJob by itself: every rule of the public definition and of the public webhook.

Stricter than upstream in counts: zero nodes or zero ranks start nothing, and are refused.
Whether the job fits the runtime that it names is `compatibility`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mpi_trainer.api import names
from mpi_trainer.api.errors import DUPLICATE, INVALID, TOO_LONG, FieldError, Path
from mpi_trainer.api.kinds.annotations import TRAINJOB_KNOWN
from mpi_trainer.api.kinds.managers import TRAINJOB_MANAGERS
from mpi_trainer.api.kinds.pods import Resources
from mpi_trainer.api.kinds.runtime import KINDS
from mpi_trainer.api.kinds.trainjob import GROUP, RuntimeRef, Source, Trainer, TrainJob
from mpi_trainer.api.validation import (
    containers,
    own_annotations,
    resources,
    rules,
    runtime_patches,
)
from mpi_trainer.api.yaml.decode import decode

SPEC: Path = ("spec",)

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+", re.DOTALL)
_MOST_ITEMS = 128


def errors(job: TrainJob) -> rules.Errors:
    yield from _metadata(job)
    yield from own_annotations.errors(job.metadata.annotations, TRAINJOB_KNOWN)
    yield from _runtime_ref((*SPEC, "runtimeRef"), job.spec.runtime_ref)
    wanted = job.spec.initializer
    if wanted is not None:
        for field, source in (("dataset", wanted.dataset), ("model", wanted.model)):
            if source is not None:
                yield from _source((*SPEC, "initializer", field), source)
    if job.spec.trainer is not None:
        yield from _trainer((*SPEC, "trainer"), job.spec.trainer)
    yield from runtime_patches.errors(job.spec.runtime_patches)
    deadline = job.spec.active_deadline_seconds
    remedy = "set the seconds that the job may run, or remove it"
    yield from rules.at_least((*SPEC, "activeDeadlineSeconds"), deadline, 1, remedy)
    yield from rules.one_of((*SPEC, "managedBy"), job.spec.managed_by, TRAINJOB_MANAGERS)


def _metadata(job: TrainJob) -> rules.Errors:
    meta = job.metadata
    field = "name" if meta.name or not meta.generate_name else "generateName"
    shown = meta.name or meta.generate_name or ""
    name = meta.name or f"{shown}{rules.GENERATED}"
    path = ("metadata", field)
    if not shown:
        yield rules.required(path, "a job must have a name", "add for example `name: train`")
    elif len(name) > names.LABEL_LENGTH:
        rule = f"must be at most {names.LABEL_LENGTH} characters"
        yield FieldError(path, TOO_LONG, shown, rule, "shorten it")
    else:
        yield from rules.name_errors(path, shown, names.dns1035_label(name))
    if meta.namespace:
        fault = names.dns1123_label(meta.namespace)
        yield from rules.name_errors(("metadata", "namespace"), meta.namespace, fault)
    yield from rules.label_map(("metadata", "labels"), meta.labels)
    yield from rules.annotation_map(("metadata", "annotations"), meta.annotations)


def _runtime_ref(path: Path, ref: RuntimeRef) -> rules.Errors:
    if not ref.name:
        rule = "a job must name its runtime"
        yield rules.required(
            (*path, "name"), rule, "name one of `kubectl get clustertrainingruntimes`"
        )
    else:
        yield from rules.name_errors((*path, "name"), ref.name, names.dns1123_subdomain(ref.name))
    yield from rules.one_of((*path, "apiGroup"), ref.api_group, (GROUP,))
    yield from rules.one_of((*path, "kind"), ref.kind, KINDS)


def _source(path: Path, source: Source) -> rules.Errors:
    uri = source.storage_uri
    where = (*path, "storageUri")
    if uri and not _URI.fullmatch(uri):
        rule = "must be a URI with a scheme"
        yield FieldError(where, INVALID, uri, rule, "write for example `hf://owner/name`")
    elif uri:
        yield from _no_longer(where, uri, 2048)
    yield from _env((*path, "env"), source.env)
    if source.secret_ref is not None and not source.secret_ref.name:
        yield rules.required((*path, "secretRef", "name"), "must name a Secret", "add its name")


def _trainer(path: Path, trainer: Trainer) -> rules.Errors:
    yield from _no_longer((*path, "image"), trainer.image or "", 500)
    for field, words in (("command", trainer.command or ()), ("args", trainer.args or ())):
        yield from rules.at_most((*path, field), len(words), _MOST_ITEMS)
        for n, word in enumerate(words):
            yield from _no_longer((*path, field, n), word, 2**20)
    yield from _env((*path, "env"), trainer.env)
    remedy = "set it to the number of nodes, or remove it to take the runtime's"
    yield from rules.at_least((*path, "numNodes"), trainer.num_nodes, 1, remedy)
    remedy = "set it to the ranks per node, or remove it to take the runtime's"
    yield from rules.at_least((*path, "numProcPerNode"), trainer.num_proc_per_node, 1, remedy)
    if trainer.resources_per_node is not None:
        yield from _resources((*path, "resourcesPerNode"), trainer.resources_per_node)


def _resources(path: Path, given: Mapping[str, Any]) -> rules.Errors:
    found = decode(Resources, given)
    for error in found.errors:
        yield replace(error, path=(*path, *error.path))
    yield from resources.errors(path, found.value)


def _env(path: Path, env: Sequence[Mapping[str, Any]]) -> rules.Errors:
    yield from rules.at_most(path, len(env), _MOST_ITEMS)
    taken: set[object] = set()
    for n, variable in enumerate(env):
        name = variable.get("name")
        if isinstance(name, str) and name in taken:
            rule = "another variable has this name"
            yield FieldError((*path, n, "name"), DUPLICATE, name, rule, "keep one of them")
        taken.add(name if isinstance(name, str) else None)
    yield from containers.variables(path, env)


def _no_longer(path: Path, text: str, most: int) -> rules.Errors:
    if len(text) > most:
        rule = f"must be at most {most} characters, and has {len(text)}"
        yield FieldError(path, TOO_LONG, rule=rule, remedy="shorten it, or put it into the image")
