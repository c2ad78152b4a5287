"""The runtimes that we ship: what unmodified clients and a restricted namespace need of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.api.effective.combine import LAUNCHER, NODE, effective
from mpi_trainer.api.kinds.labels import LABEL_ANCESTOR
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.runtime import CLUSTER, MPI, Runtime
from mpi_trainer.api.kinds.trainjob import RuntimeRef, Trainer, TrainJob, TrainJobSpec
from mpi_trainer.api.validation.runtime import errors, warnings
from mpi_trainer.layout.mpi import implementation
from mpi_trainer.local.jobs import shipped_runtimes
from tools.cluster.user_images import USER_IMAGES

MANIFESTS = Path(__file__).parents[3] / "manifests"
WANTED = {
    "mpi-openmpi-cpu": "OpenMPI",
    "mpi-openmpi5-cpu": "OpenMPI",
    "mpi-intel-cpu": "Intel",
    "mpi-mpich-cpu": "MPICH",
    "mpi-horovod-gpu": "OpenMPI",
    "openmpi-cuda": "OpenMPI",
    "torch-distributed": "",
}


@pytest.fixture(params=sorted(WANTED))
def runtime(request: pytest.FixtureRequest) -> Runtime:
    found = shipped_runtimes.runtime(request.param)
    assert found is not None
    return found


def jobs(runtime: Runtime) -> list[dict[str, Any]]:
    return list(runtime.spec.template.spec["replicatedJobs"])


def containers(runtime: Runtime) -> list[dict[str, Any]]:
    pods = [job["template"]["spec"]["template"]["spec"] for job in jobs(runtime)]
    return [container for pod in pods for container in pod["containers"]]


def test_a_cluster_gets_exactly_the_runtimes_that_local_runs_read() -> None:
    """RT-2."""
    assert set(shipped_runtimes.names()) == set(WANTED)
    listed = yaml.safe_load((shipped_runtimes.FOLDER / "kustomization.yaml").read_text())[
        "resources"
    ]
    assert sorted(listed) == sorted(f"{name}.yaml" for name in WANTED)
    (base,) = yaml.safe_load((MANIFESTS / "runtimes/kustomization.yaml").read_text())["resources"]
    assert (MANIFESTS / "runtimes" / base).resolve() == shipped_runtimes.FOLDER


def test_each_is_a_sound_cluster_runtime_named_as_its_file(runtime: Runtime) -> None:
    assert list(errors(runtime)) == []
    assert list(warnings(runtime)) == []
    assert runtime.kind == CLUSTER
    assert runtime.name in WANTED


def test_the_public_sdk_can_read_each(runtime: Runtime) -> None:
    """One that it cannot read breaks its whole list: label, ancestor, container `node`, limits."""
    assert runtime.metadata.labels["trainer.kubeflow.org/framework"] not in ("", "torchtune")
    (labelled,) = [job for job in jobs(runtime) if "metadata" in job["template"]]
    assert labelled["template"]["metadata"]["labels"] == {LABEL_ANCESTOR: "trainer"}
    assert labelled["name"] == ("launcher" if runtime.policy == MPI else "node")
    for container in containers(runtime):
        assert container["name"] == "node"
        assert container["image"]
        limits = container.get("resources", {}).get("limits", {})
        assert not limits or {"cpu", "nvidia.com/gpu"} & set(limits)


def test_each_names_the_mpi_that_it_starts(runtime: Runtime) -> None:
    """API-3. In the field, stock Kueue takes Open MPI only."""
    if runtime.policy == MPI:
        assert implementation(runtime.mpi_implementation).name == WANTED[runtime.name]
        assert runtime.mpi.mpi_implementation == "OpenMPI"


def test_each_runs_under_any_user_id_in_a_restricted_namespace(runtime: Runtime) -> None:
    """AC-20: no user id of ours, and workers without a command, so that sshd is the agent's."""
    for job in jobs(runtime):
        pod = job["template"]["spec"]["template"]["spec"]
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "command" not in container
        assert "args" not in container


def test_a_job_of_three_nodes_has_three_pods_and_rank_0_where_the_logs_are(
    runtime: Runtime,
) -> None:
    job = TrainJob(
        metadata=ObjectMeta(name="three", namespace="team"),
        spec=TrainJobSpec(
            runtime_ref=RuntimeRef(name=runtime.name),
            trainer=Trainer(num_nodes=3, command=("mpirun", "hostname")),
        ),
    )
    found = effective(job, runtime)
    assert (found.pods, found.nodes, found.slots) == (3, 3, 1)
    if runtime.policy == MPI:
        assert [one.role for one in found.jobs] == [LAUNCHER, NODE]


def test_our_own_images_are_those_that_we_have_recipes_for(runtime: Runtime) -> None:
    recipes = {recipe.reference for recipe in USER_IMAGES.values()}
    for container in containers(runtime):
        if container["image"].startswith("localhost/"):
            assert container["image"] in recipes
