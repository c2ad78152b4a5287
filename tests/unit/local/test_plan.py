"""A Layout becomes the pods of one machine."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.kinds.pods import Container, PodTemplate, Resources
from mpi_trainer.layout.agent import paths, scripts
from mpi_trainer.layout.model import File as LayoutFile
from mpi_trainer.layout.model import Host, KeyFile, Layout, PodLayout
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.local.errors import CannotApply
from mpi_trainer.local.execute.plan import JobKeys, Machine, Planner, PodLocation, limits
from mpi_trainer.local.pods.environment import Materials
from mpi_trainer.local.pods.pod import PodFile, PodLimits, PodMount, PodPaths, PodPlan
from mpi_trainer.runtime.key_pairs import KeyPair

JOB_KEY = KeyPair(b"job private", "ecdsa-sha2-nistp521 JOB")
HOST_KEY = KeyPair(b"host private", "ecdsa-sha2-nistp521 HOST")
NAMES = ("train-launcher", "train-worker-0", "train-worker-1")
SITE = Machine(
    env=(("PATH", "/venv/bin:/bin"), ("HOME", "/home/me")),
    mpi_paths=(("PATH", "/mpi/bin"), ("LD_LIBRARY_PATH", "/mpi/lib")),
    cwd="/home/me/project",
    user="me",
    sshd="/usr/sbin/sshd",
    interface="eth0",
    materials=Materials({"settings": {"a": b"A"}}, {}),
)

HOSTS = [Host(name, f"{name}.train.team.svc", 2) for name in NAMES[1:]]
WORKER_FILES = scripts.files("worker", "")
LAUNCHER_FILES = (
    LayoutFile("/etc/mpi/hostfile", 0o444, "hosts\n"),
    *scripts.files("launcher", ""),
    scripts.hosts(HOSTS),
)
WORKER_KEYS = (
    KeyFile(f"{paths.KEYS}/public", "public", None),
    KeyFile(f"{paths.KEYS}/host-private", "host-private", None),
)
LAUNCHER_KEYS = (
    KeyFile("/root/.ssh/id_rsa", "private", 0o600),
    KeyFile(f"{paths.KEYS}/private", "private", None),
    KeyFile(f"{paths.KEYS}/host-public", "host-public", None),
)


def pod(name: str, container: dict[str, Any], **spec: Any) -> PodLayout:
    worker = "worker" in name
    labels = {"app": "mine", "role": "template"}
    content = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", **container}], **spec},
    }
    return PodLayout(
        name=name,
        role="worker" if worker else "launcher",
        index=int(name[-1]) if worker else 0,
        hostname=name,
        subdomain="train",
        labels={"role": "job"},
        env=(("K_MPI_JOB_ROLE", "worker" if worker else "launcher"),),
        command=(paths.WORKER if worker else paths.LAUNCH, *container.get("command", ())),
        files=WORKER_FILES if worker else LAUNCHER_FILES,
        keys=WORKER_KEYS if worker else LAUNCHER_KEYS,
        template=PodTemplate.of(content),
    )


def plans(
    *, implementation: str = "OpenMPI", prefix: str = "", spec: Any = None, **container: Any
) -> dict[str, PodPlan]:
    pods = [pod(name, container, **(spec or {})) for name in NAMES]
    layout = Layout(
        name="train",
        namespace="team",
        implementation=implementation,
        slots=2,
        hosts=tuple(HOSTS),
        hostfile="hosts\n",
        launcher=pods[0],
        workers=tuple(pods[1:]),
        agent="full",
        ssh="managed",
    )
    places = {
        name: PodLocation(
            f"10.0.0.{n}", 2222, PodPaths(f"{prefix}/{name}" if prefix else "", "/s", "/tmp")
        )
        for n, name in enumerate(NAMES, start=2)
    }
    planner = Planner(layout, SITE, places, JobKeys(JOB_KEY, HOST_KEY))
    return {p.name: planner.pod(p) for p in pods}


def launcher(**given: Any) -> PodPlan:
    return plans(**given)["train-launcher"]


def worker(**given: Any) -> PodPlan:
    return plans(**given)["train-worker-1"]


def file(plan: PodPlan, end: str) -> PodFile:
    (found,) = [f for f in plan.files if f.path.endswith(end)]
    return found


def test_the_launcher_runs_its_command_with_references_expanded() -> None:
    env = [{"name": "STEPS", "value": "10"}]
    plan = launcher(command=["train", "--steps=$(STEPS)", "$(K_MPI_JOB_ROLE)", "$$(X)"], env=env)
    agent, *command = plan.argv
    assert agent == file(plan, "/launch").path
    assert command == ["train", "--steps=10", "launcher", "$(X)"]


def test_a_path_of_the_jobs_own_does_not_hide_the_mpi() -> None:
    env = [{"name": "PATH", "value": "/opt/app/bin"}]
    assert dict(worker(env=env).env)["PATH"] == "/mpi/bin:/opt/app/bin"


def test_a_worker_runs_the_agents_worker_whatever_its_own_command() -> None:
    plan = worker(command=["sleep", "infinity"])
    assert plan.argv == (file(plan, "/worker").path,)
    seen = dict(plan.env)
    assert (seen["MPI_TRAINER_SSH_ADDRESS"], seen["MPI_TRAINER_SSH_PORT"]) == ("10.0.0.4", "2222")


def test_the_launcher_reaches_workers_without_a_resolver() -> None:
    lines = file(launcher(), "/mpi-agent/hosts").content.decode().splitlines()
    assert lines[1] == "train-worker-1 train-worker-1.train.team.svc 10.0.0.4 2222"


def test_the_working_directory_is_the_containers_or_the_callers() -> None:
    assert launcher().cwd == "/home/me/project"
    assert launcher(workingDir="/data").cwd == "/data"


def test_every_pod_knows_every_host_by_all_its_names() -> None:
    """MPIJobs use the first, TrainJobs the second, people the last."""
    for plan in plans().values():
        lines = plan.hosts.splitlines()
        assert "127.0.0.1 localhost" in lines
        assert "10.0.0.4 train-worker-1.train.team.svc train-worker-1.train train-worker-1" in lines
        assert len([line for line in lines if ".train.team.svc" in line]) == 3


def test_the_containers_variables_stand_over_the_machines_and_the_jobs_over_both() -> None:
    env = [
        {"name": "HOME", "value": "/own"},
        {"name": "OMP_NUM_THREADS", "value": "8"},
        {"name": "K_MPI_JOB_ROLE", "value": "mine"},
    ]
    seen = dict(launcher(env=env).env)
    assert (seen["HOME"], seen["OMP_NUM_THREADS"]) == ("/own", "8")
    assert seen["K_MPI_JOB_ROLE"] == "launcher"
    assert seen["LD_LIBRARY_PATH"] == "/mpi/lib"


def test_labels_of_the_job_stand_over_those_of_the_template() -> None:
    env = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{name}']"}}}
        for name in ("app", "role")
    ]
    seen = dict(worker(env=env).env)
    assert (seen["app"], seen["role"]) == ("mine", "job")


@pytest.mark.parametrize("implementation", [impl.name for impl in REGISTRY])
def test_the_launcher_finds_the_hostfile_and_its_ssh_configuration(implementation: str) -> None:
    plan = launcher(implementation=implementation, prefix="/pods")
    values = dict(plan.env).values()
    assert "/pods/train-launcher/etc/mpi/hostfile" in values
    assert "-F /s/ssh/config" in values


def test_the_real_mpi_programs_come_first_on_the_path() -> None:
    for plan in plans().values():
        assert dict(plan.env)["PATH"] == "/mpi/bin:/venv/bin:/bin"


def test_an_own_temporary_directory_is_named_only_where_files_are_shared() -> None:
    assert "TMPDIR" not in dict(launcher().env)
    assert dict(launcher(prefix="/pods").env)["TMPDIR"] == "/tmp"


def test_private_keys_are_in_files_of_their_owner_alone() -> None:
    """AC-19"""
    for plan in plans().values():
        for f in plan.files:
            if b" private" in f.content and f.path.startswith(paths.KEYS):
                assert f.mode == 0o600, f.path
        assert all(" private" not in word for word in (*plan.argv, *dict(plan.env).values()))


def test_a_worker_admits_the_jobs_key_and_does_not_hold_it() -> None:
    plan = worker()
    assert file(plan, "/public").content == b"ecdsa-sha2-nistp521 JOB\n"
    assert all(b"job private" not in f.content for f in plan.files)
    assert file(plan, "/host-private").content == b"host private"


def test_volumes_reach_the_pod() -> None:
    volumes = [
        {"name": "cfg", "configMap": {"name": "settings"}},
        {"name": "host", "hostPath": {"path": "/srv"}},
        {"name": "shm", "emptyDir": {"sizeLimit": "1Mi"}},
    ]
    mounts = [
        {"name": "cfg", "mountPath": "/cfg"},
        {"name": "host", "mountPath": "/data", "readOnly": True},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    plan = worker(spec={"volumes": volumes}, volumeMounts=mounts)
    assert plan.mounts == (PodMount(None, "/cfg", True), PodMount("/srv", "/data", True))
    assert file(plan, "/cfg/a").content == b"A"
    assert plan.shm_bytes == 2**20


def test_what_nobody_gave_is_named() -> None:
    with pytest.raises(CannotApply, match="ConfigMap absent"):
        launcher(envFrom=[{"configMapRef": {"name": "absent"}}])


def test_limits_are_taken_and_requests_bind_nobody() -> None:
    given: dict[str, str | int | float] = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": 1}
    assert limits(Container(resources=Resources(limits=given))) == PodLimits(2**30, 1.5)
    assert limits(Container(resources=Resources(requests=given))) == PodLimits()
    assert limits(Container(resources=Resources(limits={"cpu": 2}))) == PodLimits(None, 2.0)
