"""A job from a few words is a whole and valid manifest (CTL-15)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api import names
from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import LAUNCHER, WORKER, MPIJob, MPIJobSpec, ReplicaSpec, to_wire
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.api.validation import mpijob_warnings
from mpi_trainer.api.yaml import load
from mpi_trainer.layout.mpi import REGISTRY
from mpi_trainer.sdk.job.new import LONGEST_NAME, HostMount, NewJob, name_for, with_additions

few = settings(max_examples=15)

DATA = HostMount("/data/digits", "/data", read_only=True)
OUT = HostMount("/home/ann/out", "/out")

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


def pod(job: MPIJob, role: str) -> dict[str, Any]:
    spec: dict[str, Any] = (job.spec.mpi_replica_specs or {})[role].template.content["spec"]
    return spec


def container(job: MPIJob, role: str = LAUNCHER) -> dict[str, Any]:
    first: dict[str, Any] = pod(job, role)["containers"][0]
    return first


def as_kubelet(text: str) -> str:
    """What a kubelet makes of a text where every name that it could look up is known."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda m: "$" if m[0] == "$$" else "LOOKED-UP", text)


@pytest.mark.parametrize("impl", REGISTRY, ids=lambda impl: impl.name)
def test_job_is_valid_and_raises_no_suspicion(impl: Any) -> None:
    job = NewJob(
        name="train",
        command=("python", "train.py"),
        workers=3,
        slots=2,
        implementation=impl.name,
        env=(("SEED", "1"),),
        mounts=(DATA, OUT),
        backoff_limit=0,
    ).mpijob()
    assert mpijob_rules.errors(mpijob_with_defaults(job)) == ()
    assert mpijob_warnings.warnings(mpijob_with_defaults(job)) == ()


def test_job_submitted_elsewhere_is_the_same_job() -> None:
    job = NewJob("train", ("python", "train.py"), env=(("A", "b"),), mounts=(DATA,)).mpijob()
    found = load.job(to_wire(job))
    assert (found.value, found.errors, found.warnings) == (mpijob_with_defaults(job), (), ())


def test_job_spells_out_what_was_asked_for() -> None:
    job = NewJob("t", ("a",), namespace="n", workers=3, slots=4, backoff_limit=2).mpijob()
    assert (job.name, job.namespace, job.workers, job.slots) == ("t", "n", 3, 4)
    assert job.spec.mpi_implementation == "OpenMPI"
    assert job.spec.run_policy.clean_pod_policy == "Running"
    assert job.spec.run_policy.backoff_limit == 2


def test_command_is_started_on_every_slot() -> None:
    job = NewJob("t", ("python", "train.py"), workers=3, slots=4).mpijob()
    assert container(job)["command"] == ["mpirun", "-n", "12", "python", "train.py"]


def test_command_that_starts_ranks_is_left_alone() -> None:
    job = NewJob("t", ("mpirun", "-n", "2", "./a"), workers=4).mpijob()
    assert container(job)["command"] == ["mpirun", "-n", "2", "./a"]


def test_command_to_be_left_as_it_is_is_left_as_it_is() -> None:
    assert container(NewJob("t", ("./a",), as_is=True).mpijob())["command"] == ["./a"]


def test_workers_have_no_command_and_so_run_sshd() -> None:
    worker = container(NewJob("t", ("./a",)).mpijob(), WORKER)
    assert worker == {"name": "mpi", "image": "local"}


@few
@given(texts)
@pytest.mark.parametrize("start", ["", "$", "$$", "$(HOME)", "$$(HOME)", "$é", "a$"])
def test_value_of_a_variable_survives_the_kubelet(start: str, text: str) -> None:
    """CTL-14: a `$(NAME)` in a value is the user's text, not a reference."""
    job = NewJob("t", ("./a",), env=(("A", start + text),)).mpijob()
    for role in (LAUNCHER, WORKER):
        [variable] = container(job, role)["env"]
        assert as_kubelet(variable["value"]) == start + text
        assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", variable["value"])


@pytest.mark.parametrize("line", ["echo $(hostname)", "echo $$", "echo $$(HOME) $HOME"])
def test_command_survives_the_kubelet(line: str) -> None:
    """`sh -c 'echo $$'` prints a process id, not a dollar sign."""
    command = ("sh", "-c", line)
    written = container(NewJob("t", command, as_is=True).mpijob())["command"]
    assert tuple(map(as_kubelet, written)) == command


def test_mounts_are_seen_by_launcher_and_workers_alike() -> None:
    job = NewJob("t", ("./a",), mounts=(DATA, OUT)).mpijob()
    for role in (LAUNCHER, WORKER):
        assert pod(job, role)["volumes"] == [
            {"name": "mount-0", "hostPath": {"path": "/data/digits"}},
            {"name": "mount-1", "hostPath": {"path": "/home/ann/out"}},
        ]
        assert container(job, role)["volumeMounts"] == [
            {"name": "mount-0", "mountPath": "/data", "readOnly": True},
            {"name": "mount-1", "mountPath": "/out", "readOnly": False},
        ]


def from_file(spec: dict[str, Any]) -> MPIJob:
    template = PodTemplate.of({"metadata": {"labels": {"a": "b"}}, "spec": spec})
    replicas = {
        LAUNCHER: ReplicaSpec(replicas=1, template=template),
        WORKER: ReplicaSpec(replicas=2, template=template),
    }
    return MPIJob(metadata=ObjectMeta(name="t"), spec=MPIJobSpec(mpi_replica_specs=replicas))


def test_nothing_added_changes_nothing() -> None:
    job = from_file({"containers": [{"name": "c", "image": "i", "env": None}]})
    assert with_additions(job, (), ()) is job


def test_additions_stand_beside_what_the_file_has() -> None:
    job = from_file(
        {
            "hostIPC": True,
            "volumes": [{"name": "mount-0", "emptyDir": {}}],
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "A", "value": "$(B)"}],
                    "volumeMounts": [{"name": "mount-0", "mountPath": "/scratch"}],
                },
                {"name": "logs", "image": "i"},
            ],
        }
    )
    added = with_additions(job, (("C", "$(D)"),), (DATA,))
    assert mpijob_rules.errors(mpijob_with_defaults(added)) == ()
    for role in (LAUNCHER, WORKER):
        spec = pod(added, role)
        assert spec["hostIPC"] is True
        assert spec["volumes"] == [
            {"name": "mount-0", "emptyDir": {}},
            {"name": "mount-1", "hostPath": {"path": "/data/digits"}},
        ]
        assert container(added, role)["env"] == [
            {"name": "A", "value": "$(B)"},
            {"name": "C", "value": "$$(D)"},
        ]
        assert [m["name"] for m in container(added, role)["volumeMounts"]] == ["mount-0", "mount-1"]
        assert spec["containers"][1] == {"name": "logs", "image": "i"}


@pytest.mark.parametrize("nothing", [{}, {"env": None, "volumeMounts": None}])
@pytest.mark.parametrize("volumes", [{}, {"volumes": None}])
def test_additions_fit_where_the_file_has_nothing(
    nothing: dict[str, Any], volumes: dict[str, Any]
) -> None:
    job = from_file({"containers": [{"name": "c", "image": "i", **nothing}], **volumes})
    added = with_additions(job, (("C", "d"),), (OUT,))
    assert container(added)["env"] == [{"name": "C", "value": "d"}]
    assert [v["name"] for v in pod(added, WORKER)["volumes"]] == ["mount-0"]


def test_mounts_alone_add_no_variable() -> None:
    added = with_additions(from_file({"containers": [{"name": "c", "image": "i"}]}), (), (OUT,))
    assert "env" not in container(added)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py", "train"),
        ("python3.11 /src/Train_Model.py --lr 0.1", "train-model"),
        ("./solver input", "solver"),
        ("mpirun -n 4 --bind-to none python train.py", "train"),
        ("mpiexec.hydra -n 4 ./pi", "pi"),
        ("env SEED=1 python train.py", "train"),
        ("SEED=1", "job"),
        ("env SEED=1 ./solver", "solver"),
        ("timeout 60 ./solver", "solver"),
        ("deepspeed train.py", "train"),
        ("bash run.sh", "run"),
        ("/usr/bin/env", "job"),
        ("python -m torch.distributed.run", "torch-distributed"),
        ("python", "job"),
        ("/", "job"),
        ("...", "job"),
        ("--help", "job"),
        ("3d.py", "job"),
        ("3d.py ./solver", "solver"),
        ("____.py", "job"),
        ("日本.py", "job"),
        (f"{'x' * 39}-{'y' * 9}.py", "x" * 39),
    ],
)
def test_name_reminds_of_the_command(command: str, name: str) -> None:
    assert name_for(tuple(command.split(" "))) == name


@pytest.mark.parametrize("line", ["python train.py", "a\nb", "a\tb.py", " ", ""])
def test_shell_line_gives_no_name(line: str) -> None:
    assert name_for(("bash", "-c", line)) == "job"


@few
@given(st.lists(st.text(max_size=60), max_size=5).map(tuple))
def test_name_is_always_valid(command: tuple[str, ...]) -> None:
    name = name_for(command)
    assert names.dns1035_label(name) is None
    assert len(name) <= LONGEST_NAME
