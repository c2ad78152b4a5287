"""MPIJobs on real nodes under OpenShift's rules: every MPI, as a user that no image has heard of.

The jobs of this file run side by side; each test waits for its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.api.running import Controller
from tests.cluster import Kubectl
from tests.e2e.manifests import Object
from tests.e2e.operator import Running, mpijob, submit

ALLREDUCE = """\
import os, platform, numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
mine = numpy.full(100_000, world.rank + 1.0)
total = numpy.empty_like(mine)
world.Allreduce(mine, total, op=MPI.SUM)
good = bool((total == 10).all())
where = f"host={platform.node()} {good=} uid={os.getuid()}"
print(f"rank={world.rank} of={world.size} {where}", flush=True)
"""
GIVEN = """\
import os, pathlib
from mpi4py import MPI
world = MPI.COMM_WORLD
shm = os.statvfs("/dev/shm")
mebibytes = shm.f_blocks * shm.f_frsize >> 20
token = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/token").exists()
file = pathlib.Path("/opt/given/password").read_text()
env = [os.environ.get(name) for name in ("PLAIN", "PASSWORD", "GROUP_password", "PYTHONPATH")]
print(f"rank={world.rank} {env=} {file=} {mebibytes=} {token=}", flush=True)
"""
PLACES = {
    "mpi-openmpi": "OpenMPI",
    "mpi-openmpi5": "OpenMPI",
    "mpi-mpich": "MPICH",
    "mpi-intel": "Intel",
}
USER = 1000740000
SPIN = {"OMPI_MCA_mpi_yield_when_idle": "1", "I_MPI_THREAD_YIELD": "2", "FI_PROVIDER": "tcp"}

pytestmark = pytest.mark.timeout(400, func_only=True)
Image = Callable[[str], str]


def environment(**more: str) -> list[Object]:
    """What keeps ranks from spinning where more of them run than there are processors."""
    return [{"name": name, "value": value} for name, value in {**SPIN, **more}.items()]


def ranks(directory: str, count: int, program: str) -> list[str]:
    option = ["--bind-to", "none"] if "openmpi" in directory else []
    return ["mpirun", *option, "-n", str(count), "python3", "-c", program]


@pytest.fixture(scope="module")
def jobs(restricted_home: Kubectl, image: Image) -> dict[str, Running]:
    """One job for each MPI, and one with all that a job can be given; all at once."""
    submitted = {}
    for directory, implementation in PLACES.items():
        job = mpijob(
            directory,
            image(directory),
            ranks(directory, 4, ALLREDUCE),
            mpiImplementation=implementation,
            container={"env": environment()},
        )
        submitted[directory] = submit(restricted_home, job)
    submitted["given"] = submit(restricted_home, *given(image("mpi-openmpi")))
    return submitted


def given(reference: str) -> tuple[Object, Object]:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "given"},
        "stringData": {"password": "se'cr\"et $HOME\nline"},
    }
    of_secret = {"secretKeyRef": {"name": "given", "key": "password"}}
    container = {
        "env": [*environment(PLAIN="a b"), {"name": "PASSWORD", "valueFrom": of_secret}],
        "envFrom": [{"prefix": "GROUP_", "secretRef": {"name": "given"}}],
        "volumeMounts": [{"name": "given", "mountPath": "/opt/given"}],
        "resources": {"limits": {"memory": "384Mi"}, "requests": {"memory": "64Mi"}},
    }
    volumes = {"volumes": [{"name": "given", "secret": {"secretName": "given"}}]}
    job = mpijob(
        "given",
        reference,
        ranks("mpi-openmpi", 2, GIVEN),
        slots=1,
        container=container,
        launcher=volumes,
        worker=volumes,
    )
    return job, secret


@pytest.mark.parametrize("directory", PLACES)
def test_ranks_run_on_the_workers_and_nowhere_else(
    jobs: dict[str, Running], directory: str
) -> None:
    """AC-3, AC-20, Shows 1: four ranks on two nodes, as a user that admission sets."""
    job = jobs[directory]
    job.until("Succeeded", 300)
    workers = {pod["metadata"]["name"]: pod for pod in job.pods("worker")}
    assert sorted(workers) == [f"{directory}-worker-0", f"{directory}-worker-1"]
    found = re.findall(r"rank=(\d) of=4 host=(\S+) good=True uid=(\d+)", job.log())
    assert sorted(rank for rank, *_ in found) == list("0123"), job.log()
    assert {host for _, host, _ in found} == set(workers)
    assert {int(uid) for *_, uid in found} == {USER}
    summary = job.summary()
    assert (summary.level, summary.size, summary.ended) == ("full", 4, 4)
    assert {host.pod: len(host.ranks) for host in summary.hosts} == dict.fromkeys(workers, 2)
    assert len({pod["spec"]["nodeName"] for pod in workers.values()}) == 2


def test_what_a_job_is_given_reaches_its_ranks(jobs: dict[str, Running]) -> None:
    """CTL-14, CTL-7, CTL-8: variables, Secrets, /dev/shm as large as memory; no API token."""
    job = jobs["given"]
    job.until("Succeeded", 300)
    lines = [line for line in job.log().splitlines() if line.startswith("rank=")]
    assert len(lines) == 2, job.log()
    secret = "se'cr\"et $HOME\nline"
    for line in lines:
        assert f"env=['a b', {secret!r}, {secret!r}, " in line
        assert f"file={secret!r} mebibytes=384 token=False" in line
    for pod in job.pods():
        assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert "serviceAccountToken" not in json.dumps(pod["spec"]["volumes"])


def test_the_key_ends_with_its_job_and_nobody_misses_it(
    jobs: dict[str, Running], restricted_home: Kubectl
) -> None:
    """AC-19: workers that stay (cleanPodPolicy None) do not complain of a Secret that is gone."""
    for job in jobs.values():
        job.until("Succeeded", 300)
    assert "-ssh" not in restricted_home("get", "secrets", "-o", "name")
    complaints = re.findall(r'secret "\S+-ssh" not found', restricted_home("get", "events"))
    assert not complaints


def test_a_job_as_its_user_sees_it(jobs: dict[str, Running]) -> None:
    """AC-1, AC-8, AC-10: state, counts, times and events; nothing that was not asked for."""
    job = jobs["mpi-openmpi"]
    job.until("Succeeded", 300)
    status = job.object()["status"]
    assert status["startTime"] <= status["completionTime"]
    assert status["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {"active": 2}}
    assert [event.partition(":")[0] for event in job.events()] == [
        "MPIJobCreated",
        "MPIJobRunning",
        "MPIJobSucceeded",
    ]
    columns = job.kubectl("get", "mpijob", job.name).splitlines()[1].split()
    assert columns[:4] == [job.name, "Succeeded", "2", "2"]


def test_a_worker_s_log_is_not_filled_by_probes(jobs: dict[str, Running]) -> None:
    """Its readiness is asked for until it is there, not every two seconds for ever."""
    job = jobs["mpi-openmpi"]
    job.until("Succeeded", 300)
    log = job.kubectl("logs", f"{job.name}-worker-0")
    assert "Accepted publickey" in log
    assert log.count("kex_exchange_identification") <= 3, log


def test_the_controller_counts_them(jobs: dict[str, Running], operator: Controller) -> None:
    """AC-10, CTL-12."""
    jobs["mpi-openmpi"].until("Succeeded", 300)
    space = f'{{namespace="{jobs["given"].kubectl.namespace}"}}'
    for what, least in (("created", len(jobs)), ("succeeded", 1), ("failed", 0)):
        name = f"training_operator_mpijob_{what}_total{space}"
        assert operator.metric(name) >= least, name
