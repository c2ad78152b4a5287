"""Add-ons as their projects publish them: kustomize output, changed only where we must.

Changed are the image policy (there is no registry) and, for Kueue, the list of job kinds it
manages. The result is kept as JSON by content hash: rendering takes seconds, loading does not.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tools.cluster.paths import cache_root, content_hash
from tools.cluster.processes import run

Object = dict[str, Any]
Change = Callable[[Object], Object]

_KUEUE_FRAMEWORKS = (
    "batch/job",
    "kubeflow.org/mpijob",
    "jobset.x-k8s.io/jobset",
    "trainer.kubeflow.org/trainjob",
)


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """One project's deployment: where its YAML and its program are, and what we change."""

    component: str
    program: str
    directory: str
    """the kustomization, inside the module"""
    changes: tuple[Change, ...]
    omit: str = ""
    """a resource of the kustomization that is fetched from elsewhere and installed already"""

    @property
    def version(self) -> object:
        """Changes with everything that the rendered objects depend on, but the source."""
        return (self.directory, self.omit, [change.__name__ for change in self.changes])


def rendered(kubectl: Path, source: Path, what: Published) -> list[Object]:
    """The objects of a kustomization, after all changes."""
    with tempfile.TemporaryDirectory() as scratch:
        top = what.directory.split("/")[0]
        shutil.copytree(source / top, Path(scratch) / top)
        directory = Path(scratch) / what.directory
        if what.omit:
            _omit(directory / "kustomization.yaml", what.omit)
        text = run([str(kubectl), "kustomize", str(directory)], seconds=120)
    objects = [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]
    for change in what.changes:
        objects = [change(obj) for obj in objects]
    return objects


def _omit(kustomization: Path, resource: str) -> None:
    document = yaml.safe_load(kustomization.read_text())
    document["resources"].remove(resource)
    kustomization.write_text(yaml.safe_dump(document))


def cached(name: str, version: object, make: Callable[[], list[Object]]) -> Path:
    """The file with an add-on's objects, made on first use."""
    target = cache_root() / "manifests" / f"{name}-{content_hash(version)}.json"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(".partial")
        document = {"apiVersion": "v1", "kind": "List", "items": make()}
        partial.write_text(json.dumps(document))
        partial.rename(target)
    return target


def without_registry(obj: Object) -> Object:
    """Workloads use images that are on the node already, under their published names."""
    if obj.get("kind") != "Deployment":
        return obj
    pod = obj["spec"]["template"]["spec"]
    containers = [{**c, "imagePullPolicy": "Never"} for c in pod["containers"]]
    template = {**obj["spec"]["template"], "spec": {**pod, "containers": containers}}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def with_our_job_kinds(obj: Object) -> Object:
    """Kueue manages the job kinds that our users have, and waits for no others."""
    name = obj.get("metadata", {}).get("name", "")
    if obj.get("kind") != "ConfigMap" or not name.endswith("manager-config"):
        return obj
    file = "controller_manager_config.yaml"
    config = yaml.safe_load(obj["data"][file])
    config["integrations"]["frameworks"] = list(_KUEUE_FRAMEWORKS)
    return {**obj, "data": {**obj["data"], file: yaml.safe_dump(config)}}


def asked_at_once(obj: Object) -> Object:
    """metrics-server's Deployment, which counts as ready 20 s after its start at the earliest."""
    if obj.get("kind") != "Deployment":
        return obj
    often = {"initialDelaySeconds": 1, "periodSeconds": 1, "failureThreshold": 30}
    pod = obj["spec"]["template"]["spec"]
    containers = [
        {**each, "readinessProbe": {**each["readinessProbe"], **often}}
        for each in pod["containers"]
    ]
    template = {**obj["spec"]["template"], "spec": {**pod, "containers": containers}}
    return {**obj, "spec": {**obj["spec"], "template": template}}


def images_of(objects: Iterable[Object]) -> list[str]:
    """The image names that Deployments use."""
    return [
        container["image"]
        for obj in objects
        if obj.get("kind") == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    ]


PUBLISHED: Final = {
    "jobset": Published(
        component="jobset",
        program="jobset",
        directory="config/default",
        changes=(without_registry,),
    ),
    "kueue": Published(
        component="kueue",
        program="kueue",
        directory="config/default",
        changes=(without_registry, with_our_job_kinds),
    ),
    "metrics-server": Published(
        component="metrics-server",
        program="metrics-server",
        directory="manifests/base",
        changes=(without_registry, asked_at_once),
    ),
    "mpi-operator": Published(
        component="mpi-operator",
        program="mpi-operator",
        directory="manifests/overlays/standalone",
        changes=(without_registry,),
    ),
    "trainer": Published(
        component="trainer",
        program="trainer-controller-manager",
        directory="manifests/overlays/manager",
        changes=(without_registry,),
        omit="../../third-party/jobset",
    ),
}
