"""`odh render`: the objects of a job, offline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.runtime import to_wire
from mpi_trainer.cli.app import odh
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.jobs import shipped_runtimes
from tests.golden.render.objects import FOLDER

CASE = FOLDER / "open-mpi" / "in.yaml"
KINDS = ["ConfigMap", "Service", "ConfigMap", "Secret", "Pod", "Pod", "Job"]


def render(*words: str, data: str | None = None) -> Result:
    return CliRunner().invoke(odh, ["render", *words], input=data, catch_exceptions=False)


def test_every_object_is_printed_in_the_order_of_creation() -> None:
    """CTL-1."""
    made = list(yaml.safe_load_all(render("-f", str(CASE)).stdout))
    assert [one["kind"] for one in made] == KINDS
    assert {one["metadata"]["namespace"] for one in made} == {"default"}


def test_json_is_a_list_that_kubectl_reads() -> None:
    ended = render("-f", str(CASE), "-o", "json")
    listed = json.loads(ended.stdout)
    assert listed["kind"] == "List"
    assert listed["items"] == list(yaml.safe_load_all(render("-f", str(CASE)).stdout))


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_secret_has_no_keys_and_the_output_says_so(form: str) -> None:
    """AC-19."""
    ended = render("-f", str(CASE), "-o", form)
    assert "left out" in (ended.stdout if form == "yaml" else ended.stderr)
    made = list(yaml.safe_load_all(ended.stdout))
    objects = made if form == "yaml" else made[0]["items"]
    (secret,) = (one for one in objects if one["kind"] == "Secret")
    assert "data" not in secret
    assert "stringData" not in secret


def test_the_cluster_domain_reaches_hostfile_and_search() -> None:
    text = render("-f", str(CASE), "--cluster-domain", "example.org", "-n", "lab").stdout
    made = list(yaml.safe_load_all(text))
    assert "pi-worker-0.pi.lab.svc.example.org slots=1" in made[2]["data"]["hostfile"]
    assert made[4]["spec"]["dnsConfig"]["searches"] == ["pi.lab.svc.example.org"]


def test_a_name_that_the_server_will_make_is_shown_as_such() -> None:
    text = CASE.read_text().replace("name: pi\n", "generateName: pi-\n", 1)
    made = list(yaml.safe_load_all(render("-f", "-", data=text).stdout))
    assert made[1]["metadata"]["name"] == "pi-xxxxx"


def test_what_validate_refuses_is_not_rendered(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(CASE.read_text().replace("replicas: 2", "replicas: -2"))
    with pytest.raises(InvalidJob, match=r"Worker\.replicas"):
        render("-f", str(file))


EXAMPLE = Path(__file__).parents[3] / "examples/manifests/simple-trainjob.yaml"


def test_a_trainjob_is_rendered_with_the_runtime_that_it_names() -> None:
    """API-3: the agent's scripts, which it shares; snapshot, files, keys, JobSet."""
    shared, *made = yaml.safe_load_all(render("-f", str(EXAMPLE)).stdout)
    assert shared["metadata"]["name"].startswith("mpi-agent-")
    assert [one["kind"] for one in made] == ["ConfigMap", "ConfigMap", "Secret", "JobSet"]
    assert made[0]["metadata"]["name"] == "simple-trainjob-runtime-snapshot"
    assert "data" not in made[2]
    jobs = {one["name"] for one in made[3]["spec"]["replicatedJobs"]}
    assert jobs == {"launcher", "node"}


def test_a_runtime_that_is_not_here_is_asked_for() -> None:
    text = yaml.safe_load(EXAMPLE.read_text())
    text["spec"]["runtimeRef"]["name"] = "mpi-opnmpi-cpu"
    with pytest.raises(LocalError, match="there is no ClusterTrainingRuntime") as refused:
        render("-f", "-", data=yaml.safe_dump(text))
    assert "--runtime FILE" in refused.value.hint


def near(job_in: str, runtime_in: str) -> str:
    """A file with a TrainJob and its own TrainingRuntime, which may leave their namespaces open."""
    one = shipped_runtimes.runtime("mpi-openmpi-cpu")
    assert one is not None
    brought = {**to_wire(one), "kind": "TrainingRuntime"}
    brought["metadata"] = {"name": "mine", **({"namespace": runtime_in} if runtime_in else {})}
    wanted = yaml.safe_load(EXAMPLE.read_text())
    wanted["metadata"] = {"name": "tune", **({"namespace": job_in} if job_in else {})}
    wanted["spec"]["runtimeRef"] = {"name": "mine", "kind": "TrainingRuntime"}
    return yaml.safe_dump_all([brought, wanted])


@pytest.mark.parametrize(("job_in", "runtime_in"), [("", ""), ("", "team"), ("team", "")])
def test_a_runtime_of_the_file_is_in_the_job_s_namespace(job_in: str, runtime_in: str) -> None:
    made = list(
        yaml.safe_load_all(render("-f", "-", "-n", "team", data=near(job_in, runtime_in)).stdout)
    )
    assert {one["metadata"]["namespace"] for one in made} == {"team"}


def test_a_file_without_a_job_is_refused() -> None:
    brought = next(iter(yaml.safe_load_all(near("", ""))))
    with pytest.raises(LocalError, match="holds no job"):
        render("-f", "-", data=yaml.safe_dump(brought))


def test_what_the_controllers_options_add_is_shown() -> None:
    """CTL-5, CTL-6: PodGroup and NetworkPolicies, before everything that they guard."""
    closed = ("--network-policy-default=restricted", "--network-egress-default=10.0.0.0/8")
    made = list(
        yaml.safe_load_all(render("-f", str(CASE), "--gang-scheduling=gangs", *closed).stdout)
    )
    assert [one["kind"] for one in made][1:4] == ["NetworkPolicy", "NetworkPolicy", "PodGroup"]
    assert made[3]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    pods = [one for one in made if one["kind"] == "Pod"]
    assert {one["spec"]["schedulerName"] for one in pods} == {"gangs"}
    volcano = yaml.safe_load_all(render("-f", str(CASE), "--gang-scheduling=volcano").stdout)
    assert "scheduling.volcano.sh/v1beta1" in {one["apiVersion"] for one in volcano}


def test_an_option_that_the_controller_would_refuse_is_refused() -> None:
    ended = render("-f", str(CASE), "--network-egress-default=everything")
    assert ended.exit_code == 2
    assert "must be all, none, cluster, or ranges of addresses" in ended.stderr
