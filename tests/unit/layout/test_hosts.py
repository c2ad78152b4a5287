"""Hosts, hostfile and discover_hosts.sh of any job."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.labels import LABEL_INDEX
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, MPIJobSpec, ReplicaSpec
from mpi_trainer.layout.agent.choice import Choice
from mpi_trainer.layout.hosts import discover_hosts, discovery
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.layout.mpijob import NO_GPU, layout

few = settings(max_examples=30)


def job(workers: int = 2, slots: int = 1, as_worker: bool = False, **spec: object) -> MPIJob:
    replicas = {LAUNCHER: ReplicaSpec(replicas=1), WORKER: ReplicaSpec(replicas=workers)}
    return mpijob_with_defaults(
        MPIJob(
            metadata=ObjectMeta(name="j", namespace="ns"),
            spec=MPIJobSpec(
                slots_per_worker=slots,
                run_launcher_as_worker=as_worker,
                mpi_replica_specs=replicas,
                **spec,  # type: ignore[arg-type]
            ),
        )
    )


jobs = st.builds(
    job,
    workers=st.integers(0, 30),
    slots=st.integers(1, 64),
    as_worker=st.booleans(),
    mpi_implementation=st.sampled_from([impl.name for impl in REGISTRY]),
)
domains = st.sampled_from(["", "cluster.local"])


@few
@given(jobs, domains)
def test_every_host_is_a_pod_reached_by_its_own_name(job: MPIJob, domain: str) -> None:
    """CTL-1."""
    made = layout(job, domain)
    pods = {pod.name: pod for pod in made.pods}
    assert len(pods) == job.workers + 1
    tail = f".{domain}" if domain else ""
    for host in made.hosts:
        pod = pods[host.pod]
        assert host.address == f"{pod.hostname}.{pod.subdomain}.{made.namespace}.svc{tail}"


@few
@given(jobs)
def test_ranks_have_a_slot_on_every_worker_and_on_the_launcher_where_it_is_one(job: MPIJob) -> None:
    made = layout(job)
    as_worker = bool(job.spec.run_launcher_as_worker)
    pods = made.pods if as_worker else made.workers
    assert [host.pod for host in made.hosts] == [pod.name for pod in pods]
    assert made.ranks == len(pods) * job.slots
    assert made.hostfile.count("\n") == len(pods)


@few
@given(jobs)
def test_replica_indices_count_the_pods_that_run_ranks(job: MPIJob) -> None:
    made = layout(job)
    indices = [pod.labels.get(LABEL_INDEX) for pod in made.pods]
    if not job.spec.run_launcher_as_worker:
        assert indices.pop(0) is None
    assert indices == [str(n) for n in range(len(made.hosts))]


@few
@given(jobs)
def test_launcher_is_kept_from_gpus_exactly_where_it_runs_no_rank(job: MPIJob) -> None:
    made = layout(job)
    kept = set(NO_GPU) <= set(made.launcher.env)
    assert kept is not job.spec.run_launcher_as_worker
    assert not any(set(NO_GPU) & set(pod.env) for pod in made.workers)


@few
@given(jobs, domains)
def test_discovery_lists_every_host_where_the_agent_knows_no_better(
    job: MPIJob, domain: str
) -> None:
    made = layout(job, domain)
    lines = made.launcher.files[1].text.splitlines()[1:]
    echoes = [line for line in lines if line.startswith("echo ")]
    asks = [line for line in lines if line not in echoes]
    assert sorted(echoes) == sorted(f"echo {host.address}" for host in made.hosts)
    assert asks == ["if [ -r /run/mpi-agent/alive ]; then exec cat /run/mpi-agent/alive; fi"]


def test_discovery_answers_with_the_workers_that_are_alive(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = discovery(job(3, as_worker=True), str(alive))
    everyone = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert len(everyone.stdout.splitlines()) == 4
    alive.write_text("j-worker-1.j.default.svc\n")
    living = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert [line.split(".")[0] for line in living.stdout.splitlines()] == [
        "j-launcher",
        "j-worker-1",
    ]


@few
@given(jobs)
def test_layout_holds_no_key(job: MPIJob) -> None:
    made = layout(job)
    assert "PRIVATE" not in msgspec.json.encode([pod.files for pod in made.pods]).decode()
    assert all(key.part != "private" for pod in made.workers for key in pod.keys)


@few
@given(jobs, domains, st.sets(st.integers(0, 40)))
def test_discovered_hosts_are_the_launcher_as_worker_and_the_running_workers(
    job: MPIJob, domain: str, running: set[int]
) -> None:
    names = {f"j-worker-{n}" for n in running}
    shebang, *lines = discover_hosts(job, names | {"other-worker-0"}, domain).splitlines()
    hosts = {host.pod: f"echo {host.address}" for host in layout(job, domain).hosts}
    first = [hosts["j-launcher"]] if job.spec.run_launcher_as_worker else []
    assert shebang == "#!/bin/sh"
    assert lines == first + [hosts[name] for name in sorted(names & hosts.keys())]


def test_discovered_hosts_are_in_the_order_of_their_names_as_text() -> None:
    text = discover_hosts(job(11, as_worker=True), {"j-worker-2", "j-worker-10"})
    assert [line.split(".")[0] for line in text.splitlines()[1:]] == [
        "echo j-launcher",
        "echo j-worker-10",
        "echo j-worker-2",
    ]


@pytest.mark.parametrize(
    ("given_path", "folder", "mode"),
    [
        (None, "/root/.ssh", 0o600),
        ("/root/.ssh", "/root/.ssh", 0o600),
        ("/root/.ssh/", "/root/.ssh", 0o600),
        ("/home/mpiuser/.ssh", "/home/mpiuser/.ssh", None),
        ("/root/.ssh2", "/root/.ssh2", None),
        ("/", "", None),
    ],
)
def test_only_root_gets_keys_that_nobody_else_can_read(
    given_path: str | None, folder: str, mode: int | None
) -> None:
    compatible = Choice("environment", "compatible")
    for pod in layout(job(ssh_auth_mount_path=given_path), chosen=compatible).pods:
        assert [(key.path, key.part, key.mode) for key in pod.keys] == [
            (f"{folder}/id_rsa", "private", mode),
            (f"{folder}/id_rsa.pub", "public", mode),
            (f"{folder}/authorized_keys", "public", mode),
        ]
