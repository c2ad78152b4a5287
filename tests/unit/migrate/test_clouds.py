"""MIG-2: jobs of SageMaker and Azure ML as MPIJobs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.yaml import load
from mpi_trainer.migrate import azureml, instances, sagemaker
from mpi_trainer.migrate.instances import INSTANCES
from mpi_trainer.migrate.report import UNKNOWN, Converted

REQUEST = yaml.safe_load("""
TrainingJobName: BERT-large
AlgorithmSpecification: {TrainingImage: "localhost/bert:1", TrainingInputMode: File}
RoleArn: "arn:aws:iam::1:role/x"
HyperParameters:
  sagemaker_mpi_enabled: "true"
  sagemaker_mpi_num_of_processes_per_host: "8"
  sagemaker_mpi_custom_mpi_options: "-x NCCL_DEBUG=INFO --bind-to none"
  sagemaker_program: '"train.py"'
  sagemaker_submit_directory: s3://b/code.tar.gz
  epochs: "3"
Environment: {NCCL_DEBUG: INFO}
InputDataConfig:
- {ChannelName: train, DataSource: {S3DataSource: {S3Uri: s3://b/train}}}
- {ChannelName: warm-start, DataSource: {FileSystemDataSource: {FileSystemId: fs-1}}}
OutputDataConfig: {S3OutputPath: s3://b/out}
CheckpointConfig: {S3Uri: s3://b/checkpoints}
ResourceConfig: {InstanceType: ml.p4d.24xlarge, InstanceCount: 2, VolumeSizeInGB: 100}
StoppingCondition: {MaxRuntimeInSeconds: 3600, MaxWaitTimeInSeconds: 7200}
RetryStrategy: {MaximumRetryAttempts: 2}
EnableNetworkIsolation: false
Tags: [{Key: team, Value: a}]
""")
AZURE = yaml.safe_load("""
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
display_name: mnist-horovod
experiment_name: mnist
code: src
command: >-
  python train.py --epochs ${{inputs.epochs}} --data ${{ inputs.data }} --out ${{outputs.model}}
inputs:
  epochs: 3
  data: {type: uri_folder, path: "azureml://datastores/x"}
outputs: {model: {type: uri_folder}}
environment: {image: "localhost/mnist:1", conda_file: env.yaml}
environment_variables: {SEED: "7"}
compute: azureml:gpu-cluster
distribution: {type: mpi, process_count_per_instance: 4}
resources: {instance_count: 2, instance_type: Standard_NC24s_v3, shm_size: 16g}
limits: {timeout: 3600}
""")


def made(found: Converted) -> dict[str, Any]:
    assert found.errors == ()
    (job,) = found.objects
    assert load.job(job).errors == ()
    return job


def sage(**changes: Any) -> Converted:
    return sagemaker.to_mpijob(REQUEST | changes, INSTANCES)


def hyper(**changes: str | None) -> Converted:
    given = REQUEST["HyperParameters"] | changes
    return sage(HyperParameters={k: v for k, v in given.items() if v is not None})


def azure(**changes: Any) -> Converted:
    return azureml.to_mpijob(AZURE | changes, INSTANCES)


def pod(job: dict[str, Any], role: str = "Launcher") -> Any:
    return job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def command(job: dict[str, Any]) -> list[str]:
    return list(pod(job)["containers"][0]["command"])


def test_every_machine_of_sagemaker_is_a_pod_and_runs_ranks() -> None:
    """MIG-2."""
    job = made(sage())
    spec = job["spec"]
    assert job["metadata"]["name"] == "bert-large"
    assert (spec["slotsPerWorker"], spec["runLauncherAsWorker"]) == (8, True)
    assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] == 1
    assert spec["runPolicy"]["activeDeadlineSeconds"] == 3600
    assert spec["runPolicy"]["backoffLimit"] == 2
    for role in ("Launcher", "Worker"):
        resources = pod(job, role)["containers"][0]["resources"]
        assert resources["limits"] == {"nvidia.com/gpu": 8}
        assert resources["requests"]["cpu"] == "86400m"


def test_sagemakers_program_is_called_as_its_toolkit_calls_it() -> None:
    assert command(made(sage())) == [
        *("mpirun", "-n", "16", "-x", "NCCL_DEBUG=INFO", "--bind-to", "none"),
        *("python", "-m", "mpi4py", "/opt/ml/code/train.py", "--epochs", "3"),
    ]
    assert "/bin/sh" in command(made(hyper(sagemaker_program="train.sh")))


def test_sagemakers_folders_are_volumes_and_its_variables_name_them() -> None:
    spec = pod(made(sage()))
    claims = {
        one["name"]: one.get("persistentVolumeClaim", {}).get("claimName")
        for one in spec["volumes"]
    }
    assert claims == {
        "input-train": "train",
        "input-warm-start": "warm-start",
        "model": "bert-large-model",
        "output": None,
        "checkpoints": "bert-large-checkpoints",
    }
    env = {one["name"]: one["value"] for one in spec["containers"][0]["env"]}
    assert env["SM_CHANNEL_WARM_START"] == "/opt/ml/input/data/warm-start"
    assert env["SM_NUM_GPUS"] == "8"
    assert env["NCCL_DEBUG"] == "INFO"


def test_an_own_entry_point_is_called_instead() -> None:
    algorithm = {
        "TrainingImage": "localhost/bert:1",
        "ContainerEntrypoint": ["python", "go.py"],
        "ContainerArguments": ["--fast"],
    }
    job = made(sage(AlgorithmSpecification=algorithm))
    assert command(job) == ["mpirun", "-n", "16", "python", "go.py", "--fast"]


def test_an_image_with_a_train_program_is_started_with_it() -> None:
    found = hyper(sagemaker_program=None)
    assert command(made(found))[-1] == "train"
    (line,) = (one for one in found.fields if one.field == "HyperParameters.epochs")
    assert line.fate == "lost"


def test_ranks_are_the_gpus_of_a_machine_where_nothing_else_is_said() -> None:
    assert made(hyper(sagemaker_mpi_num_of_processes_per_host=None))["spec"]["slotsPerWorker"] == 8


def test_one_machine_needs_no_worker() -> None:
    machine = {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 1}
    job = made(sage(ResourceConfig=machine))
    assert list(job["spec"]["mpiReplicaSpecs"]) == ["Launcher"]


@pytest.mark.parametrize("found", [sage(), azure()], ids=["sagemaker", "azureml"])
def test_every_field_of_a_usual_job_is_known(found: Converted) -> None:
    """MIG-2: nothing that the services' own examples use is reported as unknown."""
    assert UNKNOWN not in {one.note for one in found.fields}
    assert len(found.fields) > 12


def test_a_field_of_sagemaker_that_is_new_is_reported() -> None:
    found = sage(QuantumConfig={"Qubits": 3})
    (line,) = (one for one in found.fields if one.field.startswith("QuantumConfig"))
    assert (line.fate, line.note) == ("lost", UNKNOWN)


MACHINES = REQUEST["ResourceConfig"]


@pytest.mark.parametrize(
    ("found", "field", "words"),
    [
        (hyper(sagemaker_mpi_enabled=None), "HyperParameters.sagemaker_mpi_enabled", "with MPI"),
        (hyper(sagemaker_mpi_num_of_processes_per_host="0"),
         "HyperParameters.sagemaker_mpi_num_of_processes_per_host", "from 1 to"),
        (hyper(sagemaker_mpi_num_of_processes_per_host="1" * 5000),
         "HyperParameters.sagemaker_mpi_num_of_processes_per_host", "from 1 to"),
        (hyper(sagemaker_mpi_custom_mpi_options='-x "A'),
         "HyperParameters.sagemaker_mpi_custom_mpi_options", "close the quotes"),
        (sage(AlgorithmSpecification={"AlgorithmName": "xgboost"}),
         "AlgorithmSpecification.TrainingImage", "name the image"),
        (sage(TrainingJobName=None), "TrainingJobName", "must have a name"),
        (sage(ResourceConfig={"InstanceType": "ml.p4d.24xlarg", "InstanceCount": 1}),
         "ResourceConfig.InstanceType", "did you mean `ml.p4d.24xlarge`"),
        (sage(ResourceConfig=MACHINES | {"InstanceCount": 0}), "ResourceConfig.InstanceCount",
         "1 or more"),
        (sage(ResourceConfig={"InstanceGroups": [{"InstanceType": "ml.m5.large"}]}),
         "ResourceConfig.InstanceGroups", "all workers of an MPIJob are alike"),
        (sage(HyperParameters=["a"]), "HyperParameters", "must be an object"),
        (azure(distribution={"type": "pytorch"}), "distribution.type", "torch TrainJob"),
        (azure(distribution=None), "distribution.type", "with MPI"),
        (azure(environment="azureml:AzureML-tensorflow@latest"), "environment", "no image"),
        (azure(command=""), "command", "must be set"),
        (azure(command="x ${{inputs.nothing}}"), "command", "`inputs.nothing`"),
        (azure(resources={"instance_count": 0}), "resources.instance_count", "1 or more"),
        (azure(resources={"instance_type": "Standard_X1"}), "resources.instance_type", "table"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_told_at_its_field(
    found: Converted, field: str, words: str
) -> None:
    """MIG-2: the field, what is wrong, what to do; and nothing comes out."""
    assert found.objects == ()
    told = {one.field: str(one) for one in found.errors}
    assert words in told[field]
    assert all(one.remedy for one in found.errors)


def test_an_azure_job_runs_its_line_on_every_slot() -> None:
    """MIG-2."""
    job = made(azure())
    folder = "/mnt/azureml"
    line = f"python train.py --epochs 3 --data {folder}/inputs/data --out {folder}/outputs/model"
    assert command(job) == ["mpirun", "-n", "8", "bash", "-c", line]
    assert job["metadata"]["name"] == "mnist-horovod"
    assert job["metadata"]["annotations"]["azureml.com/experiment-name"] == "mnist"
    memory = {one["name"]: one for one in pod(job)["volumes"]}["shared-memory"]
    assert memory["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}


def test_an_azure_job_without_a_machine_type_is_told_to_have_no_resources() -> None:
    found = azure(resources={"instance_count": 2})
    assert "resources" not in pod(made(found))["containers"][0]
    assert any("set resources in both templates" in one.remedy for one in found.fields)


@pytest.mark.parametrize("given", [{"type": "boolean", "value": True}, True])
def test_a_literal_input_is_written_into_the_line(given: Any) -> None:
    job = made(azure(inputs={"flag": given}, outputs={}, command="x ${{inputs.flag}}"))
    assert command(job)[-1] == "x true"


def test_machine_types_are_a_table_that_users_extend() -> None:
    text = "ml.own: {cpu: 10, memory: 100Gi, amd.com/gpu: 2}\nml.m5.large: {cpu: 1}\n"
    table = instances.read(text, "table.yaml")
    machines = {"InstanceType": "ml.own", "InstanceCount": 1}
    request = REQUEST | {"ResourceConfig": machines}
    resources = pod(made(sagemaker.to_mpijob(request, table)))["containers"][0]["resources"]
    assert resources == {
        "requests": {"cpu": "9000m", "memory": "92160Mi"},
        "limits": {"amd.com/gpu": 2},
    }
    assert table["ml.m5.large"] == {"cpu": 1}
    assert "ml.p4d.24xlarge" in table


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ml.own: 3", "must be amounts by resource"),
        ("ml.own: {}", "must be amounts by resource"),
        ("ml.own: {cpu: many}", "must be an amount above 0"),
        ("ml.own: {cpu: 0}", "must be an amount above 0"),
    ],
)
def test_a_wrong_table_says_where(text: str, words: str) -> None:
    with pytest.raises(InvalidJob, match=words) as caught:
        instances.read(text, "table.yaml")
    assert str(caught.value).startswith("table.yaml:1:")


def test_odd_names_become_names_of_kubernetes() -> None:
    found = sage(TrainingJobName="2024_BERT large!")
    assert made(found)["metadata"]["name"] == "job-2024-bert-large"
    assert found.name == "job-2024-bert-large"


def test_what_is_wrong_with_the_mpijob_that_it_became_is_told_as_its_field() -> None:
    """A field that starts with `spec` is none that somebody wrote."""
    found = azure(resources={"shm_size": "many"})
    paths = [one.field for one in found.errors]
    assert paths and all(one.startswith("MPIJob.spec.") for one in paths)


@pytest.mark.parametrize("written", ["--NCCL_DEBUG=WARN", "--NCCL_DEBUG WARN"])
def test_the_toolkits_own_option_becomes_one_that_mpirun_has(written: str) -> None:
    """As AWS's own examples write custom_mpi_options; mpirun refuses to start with it."""
    found = hyper(sagemaker_mpi_custom_mpi_options=f"-verbose {written} -x A=1")
    command = pod(made(found))["containers"][0]["command"]
    assert command[3:8] == ["-verbose", "-x", "NCCL_DEBUG=WARN", "-x", "A=1"]


def test_machine_types_of_azure_are_found_in_any_case() -> None:
    resources = {"instance_count": 2, "instance_type": "STANDARD_NC24S_V3"}
    assert made(azure(resources=resources)) == made(
        azure(resources={**resources, "instance_type": "Standard_NC24s_v3"})
    )
