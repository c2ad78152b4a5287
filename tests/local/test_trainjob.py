"""TrainJobs on this machine: the shipped runtimes with real MPI, and nodes without MPI."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from mpi_trainer.sdk.backends.local.backend import LocalBackend
from mpi_trainer.sdk.client.clients import TrainingClient
from mpi_trainer.sdk.job.mpijob import MPIJob
from mpi_trainer.sdk.job.specs import MPIJobSpec, ReplicaSpec
from tests.local.cli import cli
from tests.local.odh import run

MPI_RUNTIMES = ("mpi-openmpi-cpu", "mpi-openmpi5-cpu", "mpi-intel-cpu", "mpi-mpich-cpu")
LIBRARIES = {
    "mpi-openmpi-cpu": "Open MPI v4",
    "mpi-openmpi5-cpu": "Open MPI v5",
    "mpi-intel-cpu": "Intel(R) MPI",
    "mpi-mpich-cpu": "MPICH",
}
HELLO = (
    "from mpi4py import MPI; import os, socket; c = MPI.COMM_WORLD; "
    "print('sum', c.allreduce(c.rank), 'on', socket.gethostname(), os.environ['GIVEN'], "
    "MPI.Get_library_version().replace(chr(10), ' ')[:20], flush=True)"
)
# What torchrun does first: the nodes meet at the master's address, and each says its number.
MEET = """\
import os, socket, time
rank, nodes = int(os.environ["PET_NODE_RANK"]), int(os.environ["PET_NNODES"])
place = (os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]))
if rank == 0:
    with socket.create_server(("", place[1])) as server:
        met = [server.accept()[0] for _ in range(nodes - 1)]
        print("met", sorted(int(one.recv(9)) for one in met), flush=True)
else:
    while True:
        try:
            socket.create_connection(place, 5).sendall(str(rank).encode())
            break
        except OSError:
            time.sleep(0.1)  # the master may be later than we
"""


def job(runtime: str, **trainer: object) -> dict[str, object]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": trainer},
    }


def plain(name: str = "ours", **changes: object) -> dict[str, object]:
    """A runtime without any policy."""
    pod = {"containers": [{"name": "aside", "image": "x"}, {"name": "node", "image": "x"}]}
    node = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": 0, "template": {"spec": pod}},
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, **changes},
            "template": {"spec": {"replicatedJobs": [node]}},
        },
    }


def written(folder: Path, *documents: dict[str, object]) -> str:
    path = folder / "trainjob.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


@pytest.mark.parametrize("runtime", MPI_RUNTIMES)
def test_ranks_run_on_every_node_of_a_shipped_runtime(runtime: str, tmp_path: Path) -> None:
    """API-2, API-3, RT-2: the launcher is a node, under the names that a cluster gives."""
    command = ["mpirun", "-n", "4", "python", "-c", HELLO]
    env = [{"name": "GIVEN", "value": "here"}]
    asked = job(runtime, numNodes=2, numProcPerNode=2, command=command, env=env)
    ended = run("run", "-f", written(tmp_path, asked), "-o", "json")
    assert ended.returncode == 0, ended.stderr
    assert [(r["rank"], r["pod"]) for r in json.loads(ended.stdout)["ranks"]] == [
        (0, "job-launcher-0-0"),
        (1, "job-launcher-0-0"),
        (2, "job-node-0-0"),
        (3, "job-node-0-0"),
    ]
    assert ended.stderr.count("sum 6 on job-") == 4
    assert ended.stderr.count(f"here {LIBRARIES[runtime]}") == 4
    assert "not applied" not in ended.stderr


def test_nodes_of_a_torch_job_meet_at_the_masters_address(tmp_path: Path) -> None:
    asked = job("torch-distributed", numNodes=3, command=["python", "-c", MEET])
    ended = run("run", "-f", written(tmp_path, asked))
    assert ended.returncode == 0, ended.stderr
    assert "[0] met [1, 2]" in ended.stdout


def test_a_plain_job_runs_its_command_on_every_node_and_waits_for_all(tmp_path: Path) -> None:
    """Node 1 is the slowest; the runtime stands in the job's own file."""
    script = 'sleep "$JOB_COMPLETION_INDEX"; echo "done by $(hostname)"'
    asked = job("ours", numNodes=2, command=["sh", "-c", script])
    ended = run("run", "-f", written(tmp_path, asked, plain()))
    assert ended.returncode == 0, ended.stderr
    assert "[0] done by job-node-0-0" in ended.stdout
    assert "[1] done by job-node-0-1" in ended.stdout


def test_one_bad_node_of_a_plain_job_fails_it_at_once(tmp_path: Path) -> None:
    script = 'if [ "$JOB_COMPLETION_INDEX" = 1 ]; then exit 3; fi; sleep 100'
    asked = job("ours", numNodes=2, command=["sh", "-c", script])
    ended = run("run", "-f", written(tmp_path, asked, plain()))
    assert ended.returncode == 1
    assert "job-node-0-1 ended with exit code 3" in ended.stderr


def test_a_runtime_may_be_given_as_a_file_and_directories_and_variables_beside_it(
    tmp_path: Path,
) -> None:
    runtime = tmp_path / "runtime.yaml"
    runtime.write_text(yaml.safe_dump(plain("another")))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "word").write_text("inside")
    asked = job("ours", command=["sh", "-c", "cat /data/word; echo $GIVEN"])
    ended = run(
        *("run", "-f", written(tmp_path, asked), "--runtime", str(runtime)),
        *("--mount", f"{tmp_path}/data:/data", "--env", "GIVEN=too"),
    )
    assert ended.returncode == 0, ended.stderr
    assert "insidetoo" in ended.stdout


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (job("mpi-openmpi-gpu", command=["x"]), "Did you mean mpi-openmpi-cpu?"),
        (job("mpi-openmpi-cpu"), "names no command"),
    ],
)
def test_what_cannot_run_here_is_refused_with_what_to_do(
    document: dict[str, object], words: str, tmp_path: Path
) -> None:
    ended = run("run", "-f", written(tmp_path, document))
    assert ended.returncode == 2, ended.stderr
    assert words in ended.stderr


def test_a_patch_for_a_job_that_the_runtime_lacks_is_refused_with_those_it_has(
    tmp_path: Path,
) -> None:
    asked = job("mpi-openmpi-cpu", command=["mpirun", "hostname"])
    jobs = {"template": {"spec": {"replicatedJobs": [{"name": "worker"}]}}}
    patch = {"manager": "example.com/team", "trainingRuntimeSpec": jobs}
    asked["spec"]["runtimePatches"] = [patch]  # type: ignore[index]
    ended = run("run", "-f", written(tmp_path, asked))
    assert ended.returncode == 2, ended.stderr
    assert "launcher" in ended.stderr


def test_flux_which_only_a_cluster_has_is_refused_by_name(tmp_path: Path) -> None:
    asked = job("ours", command=["x"])
    ended = run("run", "-f", written(tmp_path, asked, plain(flux={})))
    assert ended.returncode == 2, ended.stderr
    assert "flux" in ended.stderr


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        ("jax", "JAX_NUM_PROCESSES JAX_PROCESS_ID"),
        ("xgboost", "DMLC_NUM_WORKER DMLC_TASK_ID"),
    ],
)
def test_nodes_of_other_frameworks_know_their_number_here_too(
    policy: str, names: str, tmp_path: Path
) -> None:
    """API-2."""
    size, number = names.split()
    asked = job("ours", command=["sh", "-c", f"echo ${number} of ${size}"], numNodes=2)
    ended = run("run", "-f", written(tmp_path, asked, plain("ours", **{policy: {}})))
    assert ended.returncode == 0, ended.stderr
    assert "0 of 2" in ended.stdout


def test_a_job_in_the_background_has_the_life_of_any_job_and_keeps_its_runtime(
    tmp_path: Path,
) -> None:
    """AC-17, CTL-13: created suspended, resumed, followed, shown as a TrainJob, run again, deleted;
    its runtime's file is gone meanwhile."""
    runtime = tmp_path / "runtime.yaml"
    runtime.write_text(yaml.safe_dump(plain("another")))
    trainer = {"numNodes": 2, "command": ["sh", "-c", "echo here is $(hostname)"]}
    file = written(tmp_path, job("another", **trainer))
    with cli() as odh:

        def said(*words: str) -> str:
            return odh("trainjob", *words).stdout

        made = said("create", "-f", file, "--runtime", str(runtime), "--suspended", "-o", "name")
        assert made == "trainjob.trainer.kubeflow.org/job\n"
        runtime.unlink()
        said("wait", "job", "--for", "suspended", "--timeout", "60s")
        said("resume", "job")
        said("wait", "job", "--timeout", "60s")
        lines = ["[0] here is job-node-0-0", "[1] here is job-node-0-1"]
        assert sorted(said("logs", "job").splitlines()) == lines
        assert said("logs", "job", "--worker", "1").splitlines() == lines[1:]
        stored = yaml.safe_load(said("get", "job", "-o", "yaml"))
        assert stored["kind"] == "TrainJob"
        assert stored["spec"]["trainer"] == trainer
        told = {c["type"]: (c["status"], c["reason"]) for c in stored["status"]["conditions"]}
        assert told == {"Suspended": ("False", "Resumed"), "Complete": ("True", "AllJobsCompleted")}
        assert stored["status"]["jobsStatus"][0]["succeeded"] == 1
        said("restart", "job")
        said("wait", "job", "--timeout", "60s")
        assert "deleted" in said("delete", "job")


def test_the_sdk_makes_a_trainjob_of_a_spec_and_an_mpijob_of_an_mpijob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers are two nodes, of which the launcher is one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    pod = ReplicaSpec(env={"GIVEN": "here"})
    spec = MPIJobSpec(
        launcher=msgspec.structs.replace(pod, command=("python", "-c", HELLO)),
        worker=msgspec.structs.replace(pod, replicas=2),
        mpi_implementation="MPICH",
    )
    client = TrainingClient(backend=LocalBackend())
    try:
        job = client.create_mpi_job(spec, name="spec")
        job.wait(60)
        assert sorted(rank.pod for rank in job.describe().ranks) == [
            "spec-launcher-0-0",
            "spec-node-0-0",
        ]
        assert sum("sum 1 on spec-" in line.text for line in job.logs()) == 2
        own = MPIJob.from_spec("own", spec, backend=client.backend)
        client.create_mpi_job(own).wait(60)
        assert {rank.pod for rank in client.describe_job("own").ranks} == {
            "own-worker-0",
            "own-worker-1",
        }
    finally:
        for one in client.list_jobs():
            client.delete_job(one.key.name)
