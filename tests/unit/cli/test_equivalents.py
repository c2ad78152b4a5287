"""One job in three forms: the command line and the program are run, and make that very job.

The command goes through a POSIX shell first, so what is compared is what somebody gets who pastes
it. (area 11: one definition, four surfaces)
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mpi_trainer.api.kinds import mpijob, trainjob
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, RunPolicy
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.api.yaml import load
from mpi_trainer.cli.app import odh
from mpi_trainer.sdk.job.equivalents import Equivalents, equivalents
from mpi_trainer.sdk.job.equivalents.manifest import comparable, comparable_trainjob
from mpi_trainer.sdk.job.new import NewJob
from mpi_trainer.sdk.job.specs import ResourceRequirements, VolumeMount
from openshift_ai_sdk import training

EXAMPLES = Path(__file__).parents[3] / "examples"
PLAIN = NewJob("train", ("python", "train.py"), "team", image="image:1")


def shell_words(line: str) -> tuple[list[str], str]:
    """The words as a shell hands them over, and the input."""
    script = f"odh() {{ printf '%s\\0' \"$@\"; cat; }}\n{line}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, input=b"", check=True)
    assert not done.stderr, done.stderr
    *words, text = done.stdout.decode().split("\0")
    return words, text


def by_cli(found: Equivalents) -> dict[str, Any]:
    words, text = shell_words(found.cli)
    where = words.index("create") + 1  # what stands after `--` is the command
    asked = ["--backend", "local", *words[:where], "--dry-run", "-o", "json", *words[where:]]
    done = CliRunner().invoke(odh, asked, input=text)
    assert done.exit_code == 0, (found.cli, done.output)
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def by_program(found: Equivalents) -> dict[str, Any]:
    """What the program's job is; it is not created."""
    text = found.sdk.replace("job.create()\n", "")
    assert text != found.sdk
    space: dict[str, Any] = {}
    exec(compile(text, "program", "exec"), space)
    made: dict[str, Any] = space["job"].to_dict()
    return made


def of_wire(wire: dict[str, Any]) -> MPIJob:
    found = load.job(wire)
    assert not found.errors, found.errors
    assert isinstance(found.value, MPIJob)
    return found.value


def check(job: MPIJob) -> Equivalents:
    """All three make the job."""
    found = equivalents(job, "team")
    wanted = comparable(replace(job, metadata=replace(job.metadata, namespace="team")))
    for made in (yaml.safe_load(found.yaml), by_cli(found), by_program(found)):
        assert comparable(of_wire(made)) == wanted
    return found


def changed(job: NewJob, **fields: Any) -> MPIJob:
    return replace(job, **fields).mpijob()


def test_a_job_of_a_few_words_is_told_in_a_few_words() -> None:
    found = check(PLAIN.mpijob())
    assert found.cli == (
        "odh mpijob create train -n team --workers 2 --slots 1 --image image:1 -- python train.py"
    )
    assert found.sdk == (
        "from openshift_ai_sdk.training import MPIJob, RunPolicy\n\n"
        "job = MPIJob(\n"
        "    name='train',\n"
        "    namespace='team',\n"
        "    workers=2,\n"
        "    slots=1,\n"
        "    image='image:1',\n"
        "    command=['python', 'train.py'],\n"
        "    run_policy=RunPolicy(clean_pod_policy='Running', backoff_limit=0),\n"
        ")\n"
        "job.create()\n"
    )


MANY = changed(
    PLAIN,
    workers=4,
    slots=2,
    implementation="MPICH",
    env=(("A", "it's $HOME"), ("B", "x\ny")),
    resources=ResourceRequirements(cpu="500m", memory="8Gi", gpu=2),
    launcher_resources=ResourceRequirements(cpu=1, memory="1Gi"),
    volumes=(VolumeMount("/data", claim="data", read_only=True), VolumeMount("/out", claim="out")),
    node_selector=(("zone", "a"),),
    run_policy=RunPolicy(
        ttl_seconds_after_finished=0, active_deadline_seconds=3600, backoff_limit=3, suspend=True
    ),
)


def test_every_option_that_a_job_can_have_is_one() -> None:
    found = check(MANY)
    assert "<<" not in found.cli and "from_manifest" not in found.sdk
    for word in ("--gpu 2", "--pvc data:/data:ro", "--retries 3", "--ttl 0s", "--time-limit 3600s"):
        assert word in found.cli


def added(job: MPIJob, labels: dict[str, str], **pod: Any) -> MPIJob:
    wire = mpijob.to_wire(job)
    wire["metadata"]["labels"] = labels
    for replica in wire["spec"]["mpiReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        spec |= pod
        memory = {"medium": "Memory", "sizeLimit": "8Gi"}
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": "shm", "emptyDir": memory}]
        for one in spec["containers"]:
            mount = {"name": "shm", "mountPath": "/dev/shm"}
            one["volumeMounts"] = [*(one.get("volumeMounts") or ()), mount]
    return of_wire(wire)


@pytest.mark.parametrize("job", [PLAIN.mpijob(), MANY], ids=["plain", "many"])
def test_labels_a_queue_and_shared_memory_are_options_too(job: MPIJob) -> None:
    labels = {LABEL_QUEUE: "fast", "team": "a"}
    found = check(added(job, labels, priorityClassName="high", serviceAccountName="runner"))
    assert "<<" not in found.cli
    assert "--queue fast" in found.cli and "--shm-size 8Gi" in found.cli


def test_what_no_option_says_goes_as_a_file() -> None:
    for fields in (
        {"run_policy": RunPolicy(clean_pod_policy="All")},
        {"resources": ResourceRequirements(other={"rdma/ib": 1})},
        {"volumes": (VolumeMount("/data", claim="data", sub_path="a"),)},
    ):
        found = check(changed(PLAIN, **fields))
        assert found.cli.startswith("odh mpijob create -n team -f - <<'EOF'\napiVersion:")
        assert "from_manifest" not in found.sdk
    wire = mpijob.to_wire(PLAIN.mpijob())
    worker = wire["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"].append({"name": "side", "image": "x"})
    assert "from_manifest" in check(of_wire(wire)).sdk


def test_a_command_that_starts_its_ranks_itself_stays_as_it_is() -> None:
    for command in (("mpirun", "-n", "7", "x"), ("sh", "-c", "echo 1; mpirun x"), ("mpirun", "a")):
        found = check(changed(PLAIN, command=command))
        assert "<<" not in found.cli
    found = check(changed(PLAIN, command=("python", "x.py"), as_is=True))
    assert " --as-is " in found.cli


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
shell_texts = st.one_of(texts, st.text("'\"$`\\!*;&|<>(){}[]#~ \n\t-=%", max_size=8))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=st.lists(shell_texts, min_size=1, max_size=4), value=shell_texts)
@example(words=["$(touch /tmp/x)", "`id`", "'", "a\nb"], value="$(HOME)'\"")
@example(words=["--"], value="")
@example(words=["-f", "--dry-run"], value="EOF\n")
@example(words=["python", '"""\\', "\\"], value='"""')
def test_nothing_in_a_job_is_read_by_the_shell_or_by_python(words: list[str], value: str) -> None:
    job = changed(PLAIN, command=("run", *words), env=(("A", value),))
    check(job)
    by_file = changed(
        PLAIN,
        command=("run", *words),
        env=(("A", value),),
        run_policy=RunPolicy(clean_pod_policy="All"),
    )
    check(by_file)


def test_a_mark_that_stands_in_the_file_is_not_its_end() -> None:
    """YAML has a long text as it is, line by line."""
    job = changed(PLAIN, command=("run", "a\nEOF\nb"), run_policy=RunPolicy(clean_pod_policy="All"))
    text = yaml.safe_dump(mpijob.to_wire(job))
    assert "EOF" in text
    check(job)


JOB_FILES = sorted(
    path
    for path in EXAMPLES.rglob("*.yaml")
    if set(re.findall(r"^kind: (\w+)", path.read_text(), re.M)) <= {"MPIJob", "TrainJob"}
)


def test_there_are_examples() -> None:
    assert len(JOB_FILES) > 3


@pytest.mark.parametrize("path", JOB_FILES, ids=lambda path: path.name)
def test_every_example_is_the_same_in_all_three_forms(path: Path) -> None:
    file = load.objects(path.read_text(), path.name)
    for job in file.jobs:
        check(job)
    for train_job in file.train_jobs:
        check_trainjob(train_job)


def check_trainjob(job: TrainJob) -> Equivalents:
    found = equivalents(job, "team")
    wanted = comparable_trainjob(replace(job, metadata=replace(job.metadata, namespace="team")))
    for made in (yaml.safe_load(found.yaml), by_cli(found), by_program(found)):
        assert comparable_trainjob(of_trainjob(made)) == wanted
    return found


def of_trainjob(wire: dict[str, Any]) -> TrainJob:
    found = load.train_job(wire).value
    assert isinstance(found, TrainJob)
    return found


def test_a_trainjob_of_a_few_words_and_one_of_many() -> None:
    made = training.TrainJob(
        "train",
        runtime="torch",
        namespace="team",
        num_nodes=3,
        num_proc_per_node=2,
        image="image:1",
        command=["python", "it's $HOME"],
        args=["--x"],
        env={"A": "$(B)"},
        resources=training.ResourceRequirements(cpu=4, gpu=1),
        runtime_kind="TrainingRuntime",
    )
    job = of_trainjob(made.to_dict())
    assert "from_manifest" not in check_trainjob(job).sdk
    wire = trainjob.to_wire(job)
    wire["metadata"]["labels"] = {LABEL_QUEUE: "fast"}
    assert "from_manifest" in check_trainjob(of_trainjob(wire)).sdk


def test_the_program_runs_by_itself() -> None:
    """As a file, in an interpreter of its own."""
    text = equivalents(MANY, "team").sdk.replace("job.create()", "print(job.to_yaml())")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, text=True)
    assert comparable(of_wire(yaml.safe_load(done.stdout))) == comparable(MANY)
