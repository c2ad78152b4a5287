"""OBS-5, OPS-1: what administrators run, on a real API server, also by who may do little."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from mpi_trainer.cli.installation import bundles
from mpi_trainer.cli.installation.cluster import Cluster
from mpi_trainer.kube.config import load
from mpi_trainer.kube.oneshot import OneShot
from tests.api.admin import JOBS, Admin
from tests.api.clients.test_cli import odh, someone, viewer
from tests.api.kubelet import Kubelet
from tests.api.lab import admin, controller, kubelet, served, until
from tests.api.odh import Odh
from tests.api.running import Controller, job

__all__ = ["admin", "controller", "kubelet", "odh", "served", "viewer"]

SECRET = "hunter2-hunter2"


def test_hours_of_a_job_and_all_that_a_report_needs_of_it(
    odh: Odh, admin: Admin, kubelet: Kubelet, controller: Controller, viewer: str, tmp_path: Path
) -> None:
    made = job(1)
    for replica in made["spec"]["mpiReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        container["env"] = [{"name": "PLAIN", "value": SECRET}]
        container["resources"] = {"limits": {"nvidia.com/gpu": 4}}
    kubelet.finish = lambda pod: 0 if "launcher" in pod["metadata"]["name"] else None
    admin.create(f"{JOBS}/mpijobs", made)
    until(admin, "Succeeded")

    (row,) = odh.json("usage", "--by", "namespace")["items"]
    assert (row["namespace"], row["jobs"], row["succeeded"]) == (admin.namespace, 1, 1)
    assert row["gpu_hours"] >= row["hours"] >= 0
    head, line = odh("usage", "-o", "csv").stdout.splitlines()
    assert head == "namespace,queue,user,jobs,succeeded,failed,hours,gpu_hours"
    assert line.startswith(f"{admin.namespace},-,")
    assert "no job ran" in odh("usage", "--until", "1h", "--since", "2h").stderr

    for who, program in (("admin", odh), ("viewer", someone(admin, tmp_path, viewer))):
        target = tmp_path / f"{who}.tar.gz"
        said = program("must-gather", "pi", "--to", str(target), "--system-namespace", "nowhere")
        assert said.stdout == f"{target}\n"
        files = read(target)
        assert SECRET not in json.dumps(files), "nor in anything else of it"
        assert "PLAIN" in files["jobs/pi/mpijob.yaml"]
        assert "kind: MPIJob" in files["jobs/pi/mpijob.yaml"]
        assert "TrainJob pi:" in files["notes.txt"]
        denied = ("events of", "pods of", "deployments of nowhere")
        for what in denied:
            assert (f"{what}" in files["notes.txt"]) is (who == "viewer"), files["notes.txt"]
        assert ("jobs/pi/events.yaml" in files) is (who == "admin")
    refused = odh("must-gather", "--to", str(target), code=2).stderr
    assert "is there already" in refused and "--to" in refused


def test_an_installation_is_tried_with_the_rights_first_and_changes_nothing(
    odh: Odh, admin: Admin, viewer: str, tmp_path: Path
) -> None:
    refused = someone(admin, tmp_path, viewer)("install", code=2).stderr
    assert "get, create, patch clusterroles.rbac.authorization.k8s.io\n" in refused
    assert "nothing was changed" in refused
    tried = odh("install", "--dry-run", "--registry", "registry.example.com/mirror").stdout
    assert "deployment/mpi-trainer would be created\n" in tried
    assert "deployment/mpi-trainer" not in odh("uninstall", "--dry-run").stdout, "it is not there"
    images = odh("images", "list", "--registry", "registry.example.com/mirror").stdout
    assert "registry.example.com/mirror/mpi-trainer:" in images


def test_installing_heals_what_an_uninstall_that_stopped_halfway_left(
    admin: Admin, odh: Odh
) -> None:
    """The controller was scaled to nothing, by ourselves: that is nobody else's field."""
    (controller,) = (
        one
        for one in bundles.bundle(bundles.KUBERNETES)
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "mpi-trainer"
    )
    controller["metadata"]["namespace"] = admin.namespace
    with OneShot(load(odh.kubeconfig)) as server:
        cluster = Cluster(server)
        cluster.apply(controller)
        cluster.scale(controller, 0)
        found = cluster.get(controller)
        assert found is not None and found["spec"]["replicas"] == 0
        assert cluster.apply(controller) == "changed"
        found = cluster.get(controller)
        assert found is not None and found["spec"]["replicas"] == controller["spec"]["replicas"]


def read(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as opened:
        found = {one.name.removeprefix("must-gather/"): opened.extractfile(one) for one in opened}
        return {name: file.read().decode() for name, file in found.items() if file is not None}
