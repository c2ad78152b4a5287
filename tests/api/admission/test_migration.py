"""MIG-1 on a real API server with our admission: what `odh migrate --check` says, and of how many.

Converted means here that `--check` passes: the server takes each object and a pod of each role by a
dry run, and the pods of both jobs are the same after its admission.
"""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.admission.serving import Server
from tests.api.odh import Odh
from tests.cluster import Kubectl, eventually
from tests.unit.migrate.cases import base, mpijobs, without_workers
from tests.unit.migrate.test_clouds import AZURE, REQUEST
from tests.unit.migrate.test_legacy import ALPHA, V1
from tools.cluster.build import source_of
from tools.cluster.components import MPI_OPERATOR, TRAINER, TRAINING_OPERATOR
from tools.cluster.spec import Spec

Object = dict[str, Any]
COMPONENTS = (MPI_OPERATOR, TRAINING_OPERATOR, TRAINER)
LEAST = 0.95


@pytest.fixture
def place(api_server: Spec, webhook: Server) -> Iterator[Kubectl]:
    """A namespace whose LimitRange writes into every pod."""
    kubectl = Kubectl(api_server, f"moving-{secrets.token_hex(4)}")
    kubectl("create", "namespace", kubectl.namespace)
    usual = {"type": "Container", "defaultRequest": {"cpu": "100m"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [usual]}}
    kubectl.apply({**limits, "metadata": {"name": "usual"}})
    eventually("default account", lambda: not kubectl.attempt("get", "sa", "default").returncode)
    yield kubectl
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


@pytest.fixture
def odh(place: Kubectl) -> Odh:
    return Odh(place.spec.kubeconfig, place.namespace)


def written(folder: Path, jobs: dict[str, Object]) -> Path:
    """Each in a file; of jobs with one name the later ones get another."""
    taken: set[str] = set()
    for n, (_, given) in enumerate(jobs.items()):
        job = copy.deepcopy(given)
        meta = job.get("metadata")
        if isinstance(meta, dict):
            meta.pop("namespace", None)
            if (name := meta.get("name", "")) in taken:
                meta["name"] = f"{name}-{n}"
            if meta.get("generateName"):
                meta["generateName"] = f"job-{n}-"
            taken.add(meta.get("name", ""))
        (folder / f"{n:03}.json").write_text(json.dumps(job))
    return folder


def unknown(check: Object) -> list[Object]:
    return [one for one in check["differences"] if not one["known"]]


def test_the_cluster_is_asked_about_jobs_runtimes_and_pods_and_nothing_is_made(
    place: Kubectl, odh: Odh, tmp_path: Path
) -> None:
    """MIG-1: first without the runtime, then with it."""
    folder = written(tmp_path, {"new": base(), "old": V1})
    ended = odh("migrate", "-f", str(folder), "--check", "-o", "json")
    new, old = json.loads(ended.stdout)["jobs"]
    assert "apply that, and check again" in str(new["check"]["notes"])
    assert old["check"] == {"differences": [], "refusals": [], "notes": [], "asked": True}
    assert place("get", "mpijobs,trainjobs,trainingruntimes,pods", "-o", "name") == ""
    runtime, _ = new["objects"]
    place.apply(runtime)
    ended = odh("migrate", "-f", str(folder), "--check", "-o", "json")
    new, _ = json.loads(ended.stdout)["jobs"]
    assert (new["check"]["asked"], new["check"]["refusals"]) == (True, [])
    assert new["check"]["differences"] and not unknown(new["check"])


def test_what_the_cluster_refuses_of_job_and_pods_is_told_and_not_written(
    place: Kubectl, odh: Odh, tmp_path: Path
) -> None:
    """MIG-1: Pod Security, and a priority class that is not there."""
    place("label", "namespace", place.namespace, "pod-security.kubernetes.io/enforce=baseline")
    wide, urgent = base(), base()
    for job, field in ((wide, {"hostNetwork": True}), (urgent, {"priorityClassName": "no-such"})):
        for role in job["spec"]["mpiReplicaSpecs"].values():
            role["template"]["spec"] |= field
    out = tmp_path / "out"
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder, {"wide": wide, "urgent": urgent})
    words = ("migrate", "-f", str(folder), "--check")
    ended = odh(*words, "--output-dir", str(out), code=2)
    assert "the cluster would refuse it: pod of the launcher: " in ended.stderr
    assert "host namespaces" in ended.stderr
    assert "no PriorityClass with name no-such" in ended.stderr
    assert not out.exists()


def public() -> dict[str, Object]:
    """Every job in the examples of the public operators and the public Trainer."""
    found: dict[str, Object] = {}
    for component in COMPONENTS:
        root = source_of(component)
        for path in sorted((root / "examples").rglob("*.yaml")):
            for n, one in enumerate(yaml.safe_load_all(path.read_text())):
                if isinstance(one, dict) and one.get("kind") in ("MPIJob", "TrainJob"):
                    found[f"{component.name}/{path.relative_to(root)}:{n}"] = one
    return found


@pytest.mark.full
@pytest.mark.timeout(600, func_only=True)
def test_95_of_100_jobs_are_converted_and_every_field_is_told(
    place: Kubectl, odh: Odh, tmp_path: Path
) -> None:
    """Issue 31, Shows 1: our own MPIJobs, other sources, and all public examples."""
    theirs = public()
    clouds = {"v1": V1, "v1alpha1": ALPHA, "sagemaker": REQUEST, "azureml": AZURE}
    every = {**mpijobs(), **theirs, **clouds}
    moved = {name: job for name, job in every.items() if job.get("kind") != "TrainJob"}
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder, every)
    prepare(place, moved)
    words = ("migrate", "-f", str(folder), "--check", "--keep-going", "--to", "trainjob")
    first = json.loads(odh(*words, "-o", "json", code=2, seconds=300).stdout)
    assert len(first["jobs"]) == len(moved)
    assert first["passedOver"] == {"TrainJob": len(every) - len(moved)}
    runtimes = [one for job in first["jobs"] for one in job["objects"] if "Runtime" in one["kind"]]
    place.apply(*runtimes)
    second = json.loads(odh(*words, "-o", "json", code=2, seconds=300).stdout)["jobs"]
    converted = [
        job for job in second
        if not job["errors"] and job["check"]["asked"] and not job["check"]["refusals"]
    ]  # fmt: skip
    for job in second:
        if job not in converted:
            print(job["name"], job["errors"], job.get("check", {}).get("refusals"),
                  job.get("check", {}).get("notes"))  # fmt: skip
    differing = [(job["name"], unknown(job["check"])) for job in converted if unknown(job["check"])]
    assert differing == []
    print(f"{len(converted)} of {len(second)}; {len(theirs)} public, {len(mpijobs())} of our own")
    assert len(converted) >= LEAST * len(second)
    refused = sum(without_workers(job) for job in mpijobs().values())
    assert len(second) - len(converted) == refused


def prepare(place: Kubectl, jobs: dict[str, Object]) -> None:
    """What the jobs name, and an administrator would have."""
    accounts, classes = set(), set()
    for job in jobs.values():
        for role in (job.get("spec") or {}).get("mpiReplicaSpecs", {}).values():
            spec = role["template"]["spec"]
            accounts.add(spec.get("serviceAccountName", "default"))
            classes.add(spec.get("priorityClassName", ""))
    for name in accounts - {"default"}:
        place("create", "serviceaccount", name)
    for name in classes - {""}:
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
        place.apply({**kind, "metadata": {"name": name}})
