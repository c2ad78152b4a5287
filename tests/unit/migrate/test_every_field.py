"""MIG-1: every field of an MPIJob is carried, or the report says what became of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from mpi_trainer.api.errors import Path, under
from mpi_trainer.migrate.report import (
    CARRIED,
    MOST_UNKNOWN,
    UNKNOWN,
    Converted,
    FieldReport,
    complete,
)
from mpi_trainer.migrate.trainjob import to_trainjob
from tests.unit.migrate.cases import ROOT, base

CRD = yaml.safe_load((ROOT / "manifests/crds/kubeflow.org_mpijobs.yaml").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
REPLICA = SCHEMA["properties"]["mpiReplicaSpecs"]["additionalProperties"]
POD = REPLICA["properties"]["template"]["properties"]["spec"]
ROLES = ("Launcher", "Worker")
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
REWRITTEN = {"restartPolicy", "containerName"}
"""fields of a pod template that are another one's business: always Never, or a name that changed"""

# Values that the rules of a job take; others are made from their types.
VALUES: dict[str, Any] = {
    "slotsPerWorker": 3,
    "runLauncherAsWorker": True,
    "sshAuthMountPath": "/home/mark/.ssh",
    "launcherCreationPolicy": "WaitForWorkersReady",
    "mpiImplementation": "MPICH",
    "runPolicy.cleanPodPolicy": "All",
    "runPolicy.managedBy": "kueue.x-k8s.io/multikueue",
    "runPolicy.suspend": True,
    "runPolicy.schedulingPolicy.minResources": {"cpu": 1},
    "runPolicy.schedulingPolicy.minAvailable": 1,
}


BEFORE = json.dumps(to_trainjob(base()).objects)


def leaves(schema: dict[str, Any], path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    if "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from leaves(inner, (*path, name))
    elif schema.get("type") == "array":
        yield from leaves(schema["items"], (*path, 0))
    else:
        yield path, schema


def mark(path: Path, schema: dict[str, Any]) -> Any:
    """A value that is found again in what comes out."""
    if schema.get("x-kubernetes-int-or-string") or "anyOf" in schema:
        return 4321
    if "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        return {"mark": mark((*path, "mark"), inner if isinstance(inner, dict) else {})}
    if schema.get("enum"):
        return schema["enum"][0]
    kinds: dict[str, Any] = {"integer": 4321, "boolean": True, "number": 4321, "object": {"a": "m"}}
    return kinds.get(schema.get("type", ""), f"mark-{path[-1]}".lower())


def put(job: dict[str, Any], path: Path, value: Any) -> None:
    place: Any = job
    for part, following in itertools.pairwise(path):
        if isinstance(part, int):
            while len(place) <= part:
                place.append({})
            place = place[part]
            continue
        if place.get(part) is None:
            place[part] = [] if isinstance(following, int) else {}
        place = place[part]
    if isinstance(path[-1], int):
        place.append(value)
    else:
        place[path[-1]] = value


def told(found: Converted, path: Path) -> list[str]:
    return [one.fate for one in found.fields if under(path, [one.path])]


def spec_fields() -> dict[str, tuple[Path, Any]]:
    found: dict[str, tuple[Path, Any]] = {}
    for name, schema in SCHEMA["properties"].items():
        if name == "mpiReplicaSpecs":
            continue
        for path, leaf in leaves(schema, (name,)):
            text = ".".join(map(str, path))
            found[text] = (path, VALUES.get(text, mark(path, leaf)))
    return found


@pytest.mark.parametrize("field", spec_fields())
def test_every_field_of_the_spec_is_carried_or_reported(field: str) -> None:
    path, value = spec_fields()[field]
    job = base()
    put(job["spec"], path, value)
    found = to_trainjob(job)
    assert found.errors == (), field
    (fate,) = told(found, ("spec", *path))
    if fate == CARRIED:
        text = json.dumps(found.objects)
        assert text != BEFORE, field
        assert value in (True, "WaitForWorkersReady") or str(value) in text, field
    assert UNKNOWN not in {one.note for one in found.fields}


FEW = 7
"""fields of one part that the rules refuse by themselves, such as a Localhost profile's path"""
NEEDED = {
    "volumes": {"name": "data"},
    "env": {"name": "MARK"},
    "volumeMounts": {"name": "data", "mountPath": "/data"},
}
"""what an item of a list must have beside the field that is looked at"""


def pod_parts() -> list[Path]:
    """The fields of a pod, those of its containers apart."""
    parts: list[Path] = []
    for name, schema in POD["properties"].items():
        if name in CONTAINERS:
            parts += [(name, 0, inner) for inner in schema["items"]["properties"]]
        else:
            parts.append((name,))
    return parts


def part_schema(part: Path) -> dict[str, Any]:
    schema: dict[str, Any] = POD
    for step in part:
        schema = schema["items"] if isinstance(step, int) else schema["properties"][step]
    return schema


def changed(job: dict[str, Any], role: str, path: Path, value: Any) -> dict[str, Any]:
    spec = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    if path[0] in CONTAINERS[1:]:
        spec.setdefault(path[0], [{"name": "more", "image": "a"}])
    put(spec, path, value)
    place = spec if path[0] not in CONTAINERS else spec[path[0]][0]
    for name, needed in NEEDED.items():
        for item in place.get(name) or ():
            for field, usual in needed.items():
                item.setdefault(field, usual)
    if place.get("volumeMounts"):
        spec.setdefault("volumes", []).append({"name": place["volumeMounts"][0]["name"]})
    return job


def looked_at() -> Iterator[tuple[str, Path]]:
    """Of the launcher the containers alone: both roles go the same way."""
    for part in pod_parts():
        for role in ROLES if part[0] == "containers" else ROLES[1:]:
            yield role, part


@pytest.mark.parametrize(("role", "part"), list(looked_at()), ids=str)
def test_every_field_of_a_pod_template_arrives_as_it_was_written(role: str, part: Path) -> None:
    """CTL-10, MIG-1: one field at a time; what the rules of a job refuse alone is left out."""
    arrived = refused = 0
    for path, schema in leaves(part_schema(part), part):
        if path[-1] in REWRITTEN or path in (("containers", 0, "name"), ("containers", 0, "image")):
            continue
        value = mark(path, schema)
        found = to_trainjob(changed(base(), role, path, value))
        if found.errors:
            refused += 1
            continue
        arrived += 1
        text = json.dumps(found.objects)
        assert text != BEFORE, path
        assert str(path[-1] if isinstance(path[-1], str) else path[-2]) in text, path
        assert json.dumps(value) in text, path
        assert told(found, ("spec", "mpiReplicaSpecs", role, "template", "spec", *path))
    assert arrived + refused or part[-1] in REWRITTEN | {"name", "image"}
    assert refused <= FEW


def test_the_definition_has_as_many_fields_as_are_looked_at() -> None:
    assert sum(1 for part in pod_parts() for _ in leaves(part_schema(part), part)) > 750


def test_a_field_that_nobody_knows_of_is_reported() -> None:
    """The report is made from what was written, not from what a conversion thought of."""
    source = {"a": {"b": 1, "c": [{"d": 2}]}, "e": None, "f": {}, "g": 0}
    known = FieldReport(("a", "c", 0, "d"), CARRIED)
    first, *rest = complete(source, [known])
    assert first == known
    assert [(one.path, one.fate) for one in rest] == [(("a", "b"), "lost"), (("g",), "lost")]


def test_of_very_many_unknown_fields_the_first_are_named_and_the_others_counted() -> None:
    told = complete({f"x{n}": n for n in range(5000)}, [])
    assert len(told) == MOST_UNKNOWN + 1
    assert told[-1].note == "and 4900 more fields without a counterpart"
