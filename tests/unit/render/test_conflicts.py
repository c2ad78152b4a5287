"""What is refused before any object exists, and what just fits."""

from __future__ import annotations

import pytest

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.names import dns1035_label
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.model import File
from mpi_trainer.layout.mpijob import layout
from mpi_trainer.render.mpijob.children import Facts, children, errors
from tests.unit.render.jobs import changed_spec, job, rendered, replace, with_agent


def test_a_mount_where_the_agents_files_go_is_refused_by_its_field() -> None:
    one = job()
    plan = with_agent(layout(one))
    main = {**plan.workers[0].template.content["spec"]["containers"][0]}
    main["volumeMounts"] = [{"name": "v", "mountPath": "/run/mpi-agent/"}]
    pod = changed_spec(plan.workers[0], containers=[main], volumes=[{"name": "v", "emptyDir": {}}])
    plan = replace(plan, workers=(pod,))
    (error,) = errors(plan, one)
    where = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].volumeMounts[0].mountPath"
    assert error.field == where
    with pytest.raises(InvalidJob, match="elsewhere"):
        children(plan, one, Facts())


def test_a_mount_of_another_container_is_its_own_business() -> None:
    one = job()
    plan = with_agent(layout(one))
    listed = plan.workers[0].template.content["spec"]["containers"]
    mount = {"name": "v", "mountPath": "/run/mpi-agent"}
    listed.append({"name": "o", "image": "i", "volumeMounts": [mount]})
    pod = changed_spec(plan.workers[0], containers=listed, volumes=[{"name": "v", "emptyDir": {}}])
    assert not errors(replace(plan, workers=(pod,)), one)


def test_files_beyond_a_configmap_are_refused_with_numbers() -> None:
    """As the hostfile of some ten thousand workers would be."""
    one = job()
    plan = layout(one)
    files = (File("/etc/mpi/hostfile", 0o444, "x" * 2**20),)
    plan = replace(plan, launcher=replace(plan.launcher, files=files))
    (error,) = errors(plan, one)
    assert error.field == "spec.mpiReplicaSpecs.Worker.replicas"
    assert f"{2**20}" in error.rule


def test_the_longest_name_that_is_valid_gives_valid_names() -> None:
    made = rendered(job(name="n" * 54))
    for one in made:
        assert dns1035_label(one["metadata"]["name"]) is None
        assert all(len(value) <= 63 for value in one["metadata"]["labels"].values())


def test_a_name_beyond_that_is_refused_when_the_job_is_read() -> None:
    text = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: NAME}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: m, image: i}]}}}
""".replace("NAME", "n" * 55)
    with pytest.raises(InvalidJob, match=r"metadata\.name: Too long"):
        load.jobs(text, "file")
