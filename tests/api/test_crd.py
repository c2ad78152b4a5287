"""MPIJob's definition on a real API server: applied by plain kubectl, and as upstream's.

The public operator's own definition and examples come from its released module, which is downloaded
at the version and hash that `tools/cluster` names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mpi_trainer.api.kinds import conditions, mpijob
from tests.api.schemas import checked, nodes
from tests.cluster import Kubectl, Object, api_spec, define, eventually, shared_cluster
from tools.cluster.build import source_of
from tools.cluster.components import MPI_OPERATOR
from tools.cluster.spec import Spec
from tools.crds import definition
from tools.crds.__main__ import TARGET, main

NAME = "mpijobs.kubeflow.org"
FOLDER = TARGET.parent


@pytest.fixture(scope="module")
def api_server() -> Iterator[Spec]:
    """An API server for these tests alone: they take the definition away, and every job with it."""
    yield from shared_cluster(api_spec("test-crd"))


@pytest.fixture(scope="module")
def upstream() -> Path:
    """The public operator's files."""
    return source_of(MPI_OPERATOR)


@pytest.fixture
def no_crd(kubectl: Kubectl) -> Iterator[Kubectl]:
    """An API server without the definition; afterwards with it again."""
    kubectl("delete", "crd", NAME, "--ignore-not-found", "--wait")
    yield kubectl
    kubectl("delete", "crd", NAME, "--ignore-not-found", "--wait")
    install(kubectl)


def install(kubectl: Kubectl) -> None:
    """Apply the definition as the documentation does, and wait until it is served."""
    kubectl("apply", "-k", str(FOLDER))
    eventually("mpijobs served", lambda: not kubectl.attempt("get", "mpijobs").returncode)


@pytest.fixture
def jobs(namespace: Kubectl) -> Kubectl:
    """kubectl in a fresh namespace of a cluster that knows MPIJobs."""
    define(namespace, FOLDER, "mpijobs")
    return namespace


def job(name: str = "j", **spec: Any) -> Object:
    """The least MPIJob that the definition takes."""
    pod = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    replicas = {"Launcher": {"template": pod}, "Worker": {"replicas": 2, "template": pod}}
    return {
        "apiVersion": mpijob.API_VERSION,
        "kind": mpijob.KIND,
        "metadata": {"name": name},
        "spec": {"mpiReplicaSpecs": replicas, **spec},
    }


def test_plain_apply_installs_and_repeats(no_crd: Kubectl) -> None:
    """Upstream's definition is too large for it."""
    install(no_crd)
    assert "unchanged" in no_crd("apply", "-k", str(FOLDER))


def test_it_takes_the_place_of_upstream_s_and_keeps_its_jobs(
    no_crd: Kubectl, upstream: Path
) -> None:
    """MIG-3: installed by server-side apply, as upstream documents; then ours by plain apply."""
    theirs = str(upstream / "manifests" / "base" / "kubeflow.org_mpijobs.yaml")
    no_crd("apply", "--server-side", "-f", theirs)
    eventually("created", lambda: not _created(no_crd, job("old")))
    before = no_crd.get("mpijob", "old")
    install(no_crd)
    assert no_crd.get("mpijob", "old")["spec"] == before["spec"]
    assert no_crd.get("mpijob", "old")["metadata"]["uid"] == before["metadata"]["uid"]


def _created(kubectl: Kubectl, value: Object) -> int:
    return kubectl.attempt("apply", "-f", "-", data=json.dumps(value)).returncode


def test_stored_v1_is_refused_by_plain_apply_and_kept_by_the_installer(
    no_crd: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """API-4: a cluster that had the old training operator."""
    legacy = definition.definition()
    (version,) = legacy["spec"]["versions"]
    version["name"] = "v1"
    no_crd.apply(legacy)
    old = job("legacy") | {"apiVersion": "kubeflow.org/v1"}
    eventually("v1 job created", lambda: not _created(no_crd, old))
    refused = no_crd.attempt("apply", "-k", str(FOLDER))
    assert "status.storedVersions" in refused.stderr
    existing = tmp_path / "existing.json"
    existing.write_text(no_crd("get", "crd", NAME, "-o", "json"))
    assert main(["--beside", str(existing)]) == 0
    told = capsys.readouterr()
    assert "v1: objects are stored in it; kept, unserved" in told.err
    no_crd("apply", "-f", "-", data=told.out)
    eventually(
        "v2beta1", lambda: not no_crd.attempt("get", "mpijobs.v2beta1.kubeflow.org").returncode
    )
    kept = no_crd.get("mpijobs.v2beta1.kubeflow.org", "legacy")
    assert kept["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    stored = no_crd.get("crd", NAME)["status"]["storedVersions"]
    assert stored == ["v1", "v2beta1"]


def test_explain_describes_our_fields(jobs: Kubectl) -> None:
    eventually("published", lambda: not jobs.attempt("explain", "mpijob.spec").returncode)
    for path in ("spec", "spec.runPolicy", "spec.runPolicy.schedulingPolicy", "status"):
        text = jobs("explain", f"mpijob.{path}")
        assert "<no description>" not in text.partition("FIELDS:")[2]
    pod = jobs("explain", "mpijob.spec.mpiReplicaSpecs.template.spec.containers")
    assert "volumeMounts" in pod


def test_upstream_s_examples_are_accepted_as_they_are(jobs: Kubectl, upstream: Path) -> None:
    """API-1: with kubectl's strict check of field names."""
    files = sorted((upstream / "examples" / "v2beta1").rglob("*.yaml"))
    assert len(files) >= 5
    for file in files:
        jobs("apply", "--validate=strict", "-f", str(file))


def test_every_accepted_file_of_ours_is_accepted(jobs: Kubectl) -> None:
    folder = Path(__file__).parents[1] / "unit" / "api" / "accepted"
    for file in sorted(folder.iterdir()):
        text = file.read_text()
        documents = [json.loads(text)] if file.suffix == ".json" else yaml.safe_load_all(text)
        for each in (one for one in documents if one["kind"] == mpijob.KIND):
            kept = {k: v for k, v in each["metadata"].items() if k in ("generateName", "labels")}
            each["metadata"] = {"generateName": "j-"} | kept
            jobs("create", "--validate=strict", "-f", "-", data=json.dumps(each))


def test_defaults_are_upstream_s(jobs: Kubectl) -> None:
    jobs.apply(job(runPolicy={}))
    spec = jobs.get("mpijob", "j")["spec"]
    replicas = spec.pop("mpiReplicaSpecs")
    assert spec == {
        "launcherCreationPolicy": "AtStartup",
        "mpiImplementation": "OpenMPI",
        "runLauncherAsWorker": False,
        "runPolicy": {"suspend": False},
        "slotsPerWorker": 1,
        "sshAuthMountPath": "/root/.ssh",
    }
    assert "restartPolicy" not in replicas["Worker"]


def test_the_schema_is_upstream_s_but_for_what_is_listed(upstream: Path) -> None:
    """Fields, types, required fields, defaults and values, one by one."""
    text = (upstream / "manifests" / "base" / "kubeflow.org_mpijobs.yaml").read_text()
    theirs, ours = nodes(yaml.safe_load(text)), nodes(definition.definition())
    assert not theirs.keys() - ours.keys()
    extra = {path.rpartition(".")[2] for path in ours.keys() - theirs.keys()}
    assert extra == {"creationTimestamp"}
    different = {
        path.rpartition(".template.")[2]
        for path in theirs
        if checked(theirs[path]) != checked(ours[path])
    }
    assert different == {
        "spec",  # keeps what newer clusters add
        "spec.volumes[].azureDisk.cachingMode",  # the pod API's own defaults
        "spec.volumes[].azureDisk.kind",
    }


def test_unknown_fields_are_kept_in_the_pod_spec_and_refused_elsewhere(jobs: Kubectl) -> None:
    value = job("newer")
    value["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["fieldOfTomorrow"] = {"a": 1}
    jobs("apply", "--validate=strict", "-f", "-", data=json.dumps(value))
    worker = jobs.get("mpijob", "newer")["spec"]["mpiReplicaSpecs"]["Worker"]
    assert worker["template"]["spec"]["fieldOfTomorrow"] == {"a": 1}
    slip = job("slip")
    slip["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resource"] = {}
    slip["spec"]["slotPerWorker"] = 4
    answer = jobs.attempt("apply", "--validate=strict", "-f", "-", data=json.dumps(slip))
    assert 'unknown field "spec.slotPerWorker"' in answer.stderr
    assert "containers[0].resource" in answer.stderr
    jobs("apply", "--validate=ignore", "-f", "-", data=json.dumps(slip))
    assert "slotPerWorker" not in jobs.get("mpijob", "slip")["spec"]


def test_a_wrong_type_or_implementation_is_refused(jobs: Kubectl) -> None:
    for field, value in (("slotsPerWorker", "two"), ("mpiImplementation", "openmpi")):
        answer = jobs.attempt("apply", "-f", "-", data=json.dumps(job("w", **{field: value})))
        assert f"spec.{field}" in answer.stderr


def test_columns_show_where_a_job_stands(jobs: Kubectl) -> None:
    """API-5; also that a status of ours survives as we wrote it."""
    jobs.apply(job())
    status = _status(jobs)
    jobs(
        "patch", "mpijob", "j", "--subresource=status", "--type=merge",
        "--patch", json.dumps({"status": status}),
    )  # fmt: skip
    assert jobs.get("mpijob", "j")["status"] == status
    header, row = jobs("get", "mj", "-o", "wide").splitlines()
    assert header.split() == [
        "NAME", "STATE", "WORKERS", "ACTIVE", "SLOTS", "MPI", "FINISHED", "WHY", "AGE"
    ]  # fmt: skip
    assert row.split()[:4] == ["j", "Suspended", "2", "1"]
    assert "MPIJob suspended" in row
    assert "mpijob.kubeflow.org/j" in jobs("get", "kubeflow", "-o", "name")


def _status(jobs: Kubectl) -> Object:
    created = jobs.get("mpijob", "j")["metadata"]["creationTimestamp"]
    at = msgspec.convert(created, datetime)
    story: conditions.Conditions = ()
    for kind, message in (("Created", "is created"), ("Suspended", "MPIJob suspended")):
        new = conditions.Condition(type=kind, status="True", reason="MPIJob", message=message)
        story = conditions.with_condition(story, new, at)
    status = mpijob.MPIJobStatus(
        conditions=story,
        replica_statuses={"Worker": mpijob.ReplicaStatus(active=1, selector="a=b")},
        start_time=at,
        completion_time=at,
        last_reconcile_time=at,
    )
    wire: Object = json.loads(msgspec.json.encode(status))
    return wire
