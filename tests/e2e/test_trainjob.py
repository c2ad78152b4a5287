"""TrainJobs on real nodes with JobSet, under OpenShift's rules: every MPI, torch's way, and plain.

The jobs of this file run side by side, each with its launcher and its node on different machines;
each test waits for its own.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl, eventually
from tests.e2e.manifests import Object
from tests.e2e.test_mpijob import ALLREDUCE, USER, environment, ranks
from tools.cluster.spec import Spec

RUNTIMES = Path(__file__).parents[2] / "src/mpi_trainer/local/runtimes"
PLACES = {
    "mpi-openmpi": "mpi-openmpi-cpu",
    "mpi-openmpi5": "mpi-openmpi5-cpu",
    "mpi-mpich": "mpi-mpich-cpu",
    "mpi-intel": "mpi-intel-cpu",
}
OURS = "mpi-trainer.opendatahub.io"
# What torch.distributed does with torchrun's variables: all meet at the address of the first.
MEETING = """\
import os, socket, time
rank, nodes = int(os.environ["PET_NODE_RANK"]), int(os.environ["PET_NNODES"])
place = (os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]))
if rank == 0:
    with socket.create_server(("", place[1])) as door:
        met = [door.accept()[0].recv(100).decode() for _ in range(nodes - 1)]
    print(f"rank 0 met {met} procs={os.environ['PET_NPROC_PER_NODE']}", flush=True)
else:
    for _ in range(300):
        try:
            with socket.create_connection(place, timeout=5) as one:
                one.sendall(f"{rank} of {nodes}".encode())
            break
        except OSError:
            time.sleep(0.2)
    else:
        raise SystemExit("met nobody")
"""

pytestmark = pytest.mark.timeout(400, func_only=True)
Image = Callable[[str], str]


class Trained(msgspec.Struct, frozen=True):
    """A TrainJob that was submitted, as its user sees it."""

    kubectl: Kubectl
    name: str

    def object(self) -> Object:
        return self.kubectl.read(f"apis/trainer.kubeflow.org/v1alpha1/trainjobs/{self.name}")

    def until(self, kind: str, status: str = "True", seconds: int = 240) -> Object:
        """Waits for a condition; the condition. Ends early if the job has."""

        def reached() -> bool:
            found = self.conditions()
            over = {k for k in ("Complete", "Failed") if found.get(k, {}).get("status") == "True"}
            assert not over - {kind}, f"{self.name} is {over}, not {kind}\n{self.story()}"
            return bool(found.get(kind, {}).get("status") == status)

        try:
            eventually(f"{self.name} is {kind}", reached, seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None
        return self.conditions()[kind]

    def conditions(self) -> dict[str, Object]:
        return {c["type"]: c for c in self.object().get("status", {}).get("conditions", [])}

    def finding(self, name: str) -> str:
        return str(self.object()["metadata"].get("annotations", {}).get(f"{OURS}/{name}", ""))

    def pods(self) -> list[Object]:
        query = urllib.parse.urlencode(
            {"labelSelector": f"jobset.sigs.k8s.io/jobset-name={self.name}"}
        )
        items: list[Object] = self.kubectl.read(f"api/v1/pods?{query}")["items"]
        return items

    def log(self, job: str = "launcher") -> str:
        return self.kubectl("logs", f"job/{self.name}-{job}-0", "--container=node")

    def story(self) -> str:
        """Everything that a failed test should show."""
        shown = [
            ("get", "trainjob", self.name, "-o", "yaml"),
            ("get", "jobsets,jobs,pods", "-o", "wide"),
            ("logs", f"job/{self.name}-launcher-0", "--all-containers", "--tail=40"),
            ("get", "events"),
        ]
        return "\n".join(self.kubectl.attempt(*arguments).stdout for arguments in shown)


def train_job(name: str, runtime: str, trainer: Object, **spec: Any) -> Object:
    """Launcher and node on different machines, whatever the scheduler would like."""
    patch = {
        "manager": f"{OURS}/test",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": spec.pop("patches", [])}}},
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": trainer,
            "runtimePatches": [patch],
            **spec,
        },
    }


def on(node: int, job: str, **pod: Any) -> Object:
    """A patch that puts a replicated job onto one machine."""
    place = {"nodeSelector": {"kubernetes.io/hostname": f"node{node}"}, **pod}
    return {"name": job, "template": {"spec": {"template": {"spec": place}}}}


def submit(kubectl: Kubectl, job: Object) -> Trained:
    kubectl.apply(job)
    return Trained(kubectl, job["metadata"]["name"])


@pytest.fixture(scope="module")
def home(operator: Controller, cluster: Spec, restricted_home: Kubectl) -> Iterator[Kubectl]:
    """The namespace of the run's jobs, with the shipped runtimes and one that is plain."""
    kubectl = Kubectl(cluster)
    files = [f"--filename={RUNTIMES / name}.yaml" for name in PLACES.values()]
    kubectl("apply", *files, f"--filename={RUNTIMES / 'torch-distributed.yaml'}")
    yield restricted_home


@pytest.fixture(scope="module")
def jobs(home: Kubectl, image: Image) -> dict[str, Trained]:
    """One job for each MPI, one of torch's kind and one that fails; all at once."""
    apart = [on(1, "launcher"), on(2, "node")]
    made = {}
    for directory, runtime in PLACES.items():
        trainer = {
            "image": image(directory),
            "numNodes": 2,
            "numProcPerNode": 2,
            "command": ranks(directory, 4, ALLREDUCE),
            "env": environment(),
        }
        # An MPIJob of the same name would have the Service that the JobSet needs.
        name = f"train-{directory}"
        made[directory] = submit(home, train_job(name, runtime, trainer, patches=apart))
    reference = image("mpi-openmpi")
    meeting = {
        "image": reference,
        "numNodes": 2,
        "numProcPerNode": 3,
        "command": ["python3", "-c", MEETING],
    }
    made["meeting"] = submit(home, train_job("meeting", "torch-distributed", meeting))
    bad = "import sys; from mpi4py import MPI; sys.exit(7 if MPI.COMM_WORLD.rank == 3 else 0)"
    trainer = {
        "image": reference,
        "numNodes": 2,
        "numProcPerNode": 2,
        "command": ranks("mpi-openmpi", 4, bad),
        "env": environment(),
    }
    made["bad"] = submit(home, train_job("bad", "mpi-openmpi-cpu", trainer, patches=apart))
    return made


@pytest.mark.parametrize("directory", PLACES)
def test_ranks_run_on_both_hosts_as_a_user_that_no_image_knows(
    jobs: dict[str, Trained], directory: str
) -> None:
    """API-2, API-3, AC-20, Shows 1."""
    job = jobs[directory]
    assert job.until("Complete", seconds=300)["reason"] == "AllJobsCompleted"
    found = re.findall(r"rank=(\d) of=4 host=(\S+) good=True uid=(\d+)", job.log())
    assert sorted(rank for rank, *_ in found) == list("0123"), job.log()
    hosts = {f"{job.name}-launcher-0-0": "0-1", f"{job.name}-node-0-0": "2-3"}
    assert {host for _, host, _ in found} == set(hosts)
    assert {int(uid) for *_, uid in found} == {USER}
    assert json.loads(job.finding("placement")) == hosts
    assert job.finding("phase") == "Succeeded"
    assert job.finding("start-time") <= job.finding("completion-time")


def test_nodes_of_a_torch_job_meet_where_torchrun_is_told(jobs: dict[str, Trained]) -> None:
    """API-2: by torchrun's variables, and nothing of MPI beside them."""
    job = jobs["meeting"]
    job.until("Complete", seconds=300)
    assert "rank 0 met ['1 of 2'] procs=3" in job.log("node")
    assert "mpi-agent" not in job.log("node")
    assert "meeting-" not in job.kubectl("get", "secrets", "-o", "name")


def test_a_failure_names_the_rank_that_failed(jobs: dict[str, Trained]) -> None:
    """AC-9: in the condition, beside JobSet's own words, and where the log still is."""
    job = jobs["bad"]
    told = job.until("Failed", seconds=300)
    assert told["reason"] == "FailedJobs"
    assert "rank 3 on bad-node-0-0" in told["message"], job.story()
    assert "rank 3 on bad-node-0-0" in job.finding("cause")
    assert "mpi-agent" in job.log()


def test_a_job_that_comes_back_as_another_gets_another_jobset(home: Kubectl, image: Image) -> None:
    """JobSet refuses such a change; upstream's job would never come back."""
    trainer = {"image": image("mpi-openmpi"), "numNodes": 2, "command": ["mpirun", "hostname"]}
    job = submit(home, train_job("changed", "mpi-openmpi-cpu", trainer, suspend=True))
    job.until("Suspended")
    eventually("JobSet", lambda: not home.attempt("get", "jobset", "changed").returncode)
    before = home.get("jobset", "changed")["metadata"]["uid"]
    grace = on(2, "node", terminationGracePeriodSeconds=3)
    after = train_job("changed", "mpi-openmpi-cpu", trainer, suspend=False, patches=[grace])
    home.apply(after)
    job.until("Complete")
    made = home.get("jobset", "changed")
    assert made["metadata"]["uid"] != before
    (node,) = (job for job in made["spec"]["replicatedJobs"] if job["name"] == "node")
    assert node["template"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 3
