"""Whatever our definition of a pod template can say is taken, rendered and written back (W-3)."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.api.kinds import jobset, pods
from mpi_trainer.api.kinds.known_fields import FIELDS
from mpi_trainer.api.kinds.meta import PartlyRead
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.api.yaml.shapes import fields
from tests.unit.api.building import ROLES, job
from tests.unit.render.jobs import UID, rendered

Schema = dict[str, Any]
Steps = tuple[str, ...]

CRD = Path(__file__).parents[3] / "manifests" / "crds" / "kubeflow.org_mpijobs.yaml"

# By the end of the path, where any value of the field's type would not do.
VALUES: dict[str, object] = {
    "volumeMounts.name": "data",
    "mountPath": "/data",
    "subPath": "a/b",
    "workingDir": "/work",
    "appArmorProfile.type": "Localhost",
    "seccompProfile.type": "Localhost",
    "procMount": "Unmasked",
    "fsGroupChangePolicy": "OnRootMismatch",
    "supplementalGroupsPolicy": "Strict",
    "sysctls.name": "net.core.somaxconn",
    "envFrom.configMapRef.name": "settings",
    "limits": {"cpu": "2", "memory": "1Gi"},
    "requests": {"cpu": "2", "memory": "1Gi"},
    "overhead": {"cpu": "1"},
    "claims.name": "gpus",
    "emptyDir.sizeLimit": "1Gi",
    "metadata.labels": {"team": "a"},
    "metadata.annotations": {"team": "a"},
    "securityContext.capabilities.add": ["NET_ADMIN"],
}
# What a pod is not valid without beside the field, though its definition does not say so.
BESIDE: dict[str, dict[str, Any]] = {
    "spec.containers": {"name": "main", "image": "example.com/train:1"},
    "spec.initContainers": {"name": "first", "image": "example.com/train:1"},
    "spec.volumes": {"name": "data"},
    "secretKeyRef": {"name": "x", "key": "k"},
    "configMapKeyRef": {"name": "x", "key": "k"},
    "envFrom": {"configMapRef": {"name": "x"}},
    "configMapRef": {"name": "x"},
    "secretRef": {"name": "x"},
    "hostPath": {"path": "/x"},
    "persistentVolumeClaim": {"claimName": "x"},
    "volumes.secret": {"secretName": "x"},
    "appArmorProfile": {"type": "Localhost", "localhostProfile": "x"},
    "seccompProfile": {"type": "Localhost", "localhostProfile": "x"},
}
# The job's own: names, restarts, ways to find the other pods, and of metadata the marks alone.
OURS = {"metadata", "spec.restartPolicy", "spec.hostname", "spec.subdomain", "spec.dnsPolicy"}


def template_schema() -> Schema:
    version = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    found: Schema = spec["mpiReplicaSpecs"]["additionalProperties"]["properties"]["template"]
    return found


def leaves(schema: Schema, steps: Steps = ()) -> Iterator[Steps]:
    below = schema.get("items", schema).get("properties") or {}
    if not below:
        yield steps
    for name, part in below.items():
        yield from leaves(part, (*steps, name))


def ending(table: dict[str, Any], steps: Steps) -> Any:
    path = "." + ".".join(steps)
    return next((value for end, value in table.items() if path.endswith(f".{end}")), None)


def sample(schema: Schema, steps: Steps) -> Any:
    """A value that the definition allows."""
    if (given := ending(VALUES, steps)) is not None:
        return copy.deepcopy(given)
    kind = schema.get("type", "")
    if kind == "array":
        return [sample(schema["items"], steps)]
    if "additionalProperties" in schema:
        return {"key": sample(schema["additionalProperties"], (*steps, "key"))}
    if kind == "object":
        return required(schema, steps)
    plain = {"integer": 1, "number": 1, "boolean": True}.get(kind, "x")
    return schema.get("enum", [1 if schema.get("x-kubernetes-int-or-string") else plain])[0]


def required(schema: Schema, steps: Steps) -> dict[str, Any]:
    parts = schema.get("properties") or {}
    found = {n: sample(parts[n], (*steps, n)) for n in schema.get("required") or () if n in parts}
    return {**found, **copy.deepcopy(ending(BESIDE, steps) or {})}


def built(schema: Schema, steps: Steps, done: Steps = ()) -> Any:
    """The smallest value that has the field and is otherwise whole."""
    if not steps:
        return sample(schema, done)
    if schema.get("type") == "array":
        return [built(schema["items"], steps, done)]
    name = (*done, steps[0])
    beside = required(schema, done)
    if done[-1:] == ("envFrom",) and steps[0] in ("secretRef", "configMapRef"):
        beside = {}
    return {**beside, steps[0]: built(schema["properties"][steps[0]], steps[1:], name)}


def whole(schema: Schema, steps: Steps) -> dict[str, Any]:
    found: dict[str, Any] = built(schema, steps)
    spec = found.setdefault("spec", {})
    spec.setdefault("containers", [dict(BESIDE["spec.containers"])])
    spec.setdefault("volumes", [{"name": "data", "emptyDir": {}}])
    return found


def loaded(content: dict[str, Any]) -> MPIJob:
    data = job(((*ROLES, "Worker", "template"), content), (("metadata", "uid"), UID))
    found = load.job(data)
    assert not found.errors, [str(error) for error in found.errors]
    assert isinstance(found.value, MPIJob)
    return found.value


def within(found: Any, given: Any) -> bool:
    """Whether all that was given is in what was found; lists may have more in them."""
    if isinstance(given, dict):
        return isinstance(found, dict) and all(
            within(found.get(name), value) for name, value in given.items()
        )
    if isinstance(given, list):
        return isinstance(found, list) and all(
            any(within(one, item) for one in found) for item in given
        )
    return bool(found == given)


def shown(content: dict[str, Any]) -> dict[str, Any]:
    """Less what is the job's own."""
    spec = {name: part for name, part in content["spec"].items() if f"spec.{name}" not in OURS}
    return {"spec": spec}


SCHEMA = template_schema()
PATHS = list(leaves(SCHEMA))


def test_the_definition_holds_a_whole_pod() -> None:
    assert len(PATHS) > 700
    assert ("spec", "containers", "securityContext", "readOnlyRootFilesystem") in PATHS
    assert ("spec", "securityContext", "seLinuxChangePolicy") in PATHS


@pytest.mark.parametrize("part", sorted({".".join(steps[:3]) for steps in PATHS}))
def test_every_field_is_taken_rendered_and_written_back(part: str) -> None:
    """W-3: 18 fields that harden a pod were refused as unknown."""
    for steps in PATHS:
        if ".".join(steps[:3]) != part:
            continue
        content = whole(SCHEMA, steps)
        made = loaded(content)
        wire = to_wire(made)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        assert wire == content, steps
        (worker,) = rendered(made).workers[:1]
        assert within({"spec": worker["spec"]}, shown(content)), steps


@pytest.mark.parametrize(
    "steps",
    [
        ("someday",),
        ("spec", "someday"),
        ("spec", "securityContext", "someday"),
        ("spec", "securityContext", "seccompProfile", "someday"),
        ("spec", "containers", "someday"),
        ("spec", "containers", "securityContext", "someday"),
        ("spec", "containers", "securityContext", "capabilities", "someday"),
        ("spec", "initContainers", "securityContext", "someday"),
        ("spec", "volumes", "secret", "someday"),
    ],
)
def test_field_of_a_later_kubernetes_is_passed_on(steps: Steps) -> None:
    schema = copy.deepcopy(SCHEMA)
    place = schema
    for step in steps[:-1]:
        place = place["properties"][step]
        place = place.get("items", place)
    place["properties"][steps[-1]] = {"type": "string"}
    content = whole(schema, steps)
    made = loaded(content)
    assert to_wire(made)["spec"]["mpiReplicaSpecs"]["Worker"]["template"] == content
    (worker,) = rendered(made).workers[:1]
    assert steps[0] != "spec" or within({"spec": worker["spec"]}, shown(content))


def parts_read() -> list[type]:
    modules = (pods, jobset)
    found = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    return [one for one in found if issubclass(one, PartlyRead) and one is not PartlyRead]


def test_what_is_read_in_part_is_known_whole() -> None:
    """Else a slip could not be told from a field of Kubernetes."""
    assert set(parts_read()) == set(FIELDS)
    for kind in parts_read():
        assert set(fields(kind)) <= FIELDS[kind]
