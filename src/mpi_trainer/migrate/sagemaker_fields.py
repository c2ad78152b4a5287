"""What becomes of each field of CreateTrainingJob in an MPIJob, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mpi_trainer.api.errors import Path
from mpi_trainer.migrate.cloud_job import CloudJob
from mpi_trainer.migrate.report import CARRIED, CHANGED, LOST, FieldReport
from mpi_trainer.migrate.sagemaker_kinds import Request

_POD: Final = "spec.mpiReplicaSpecs.*.template.spec"
_COMMAND: Final = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command"

# field → what SageMaker did, and what to do here.
_WITHOUT: Mapping[str, tuple[str, str]] = {
    "RoleArn": ("a role of AWS gives rights to AWS alone",
                "give the pods a service account or Secret that may read their data"),
    "VpcConfig": ("networks are the cluster's own",
                  "annotate the job with mpi-trainer.opendatahub.io/network-policy: restricted"),
    "EnableNetworkIsolation": ("networks are the cluster's own",
                  "annotate the job with mpi-trainer.opendatahub.io/network-policy: restricted"),
    "EnableInterContainerTrafficEncryption": ("ranks talk to each other as MPI does",
                  "encrypt the cluster's network, if that is needed"),
    "EnableManagedSpotTraining": ("spot machines are a matter of nodes",
                  "add a nodeSelector and tolerations for spot nodes to both templates"),
    "DebugHookConfig": ("SageMaker's debugger is not there", ""),
    "DebugRuleConfigurations": ("SageMaker's debugger is not there", ""),
    "ProfilerConfig": ("SageMaker's profiler is not there", ""),
    "ProfilerRuleConfigurations": ("SageMaker's profiler is not there", ""),
    "ExperimentConfig": ("SageMaker's experiments are not there",
                         "report metrics to an experiment tracker from the program"),
    "TensorBoardOutputConfig": ("nothing copies TensorBoard's files",
                                "write them to a volume"),
    "InfraCheckConfig": ("SageMaker's health check is not there",
                         "try the nodes with `odh runtime test`"),
    "RemoteDebugConfig": ("use `odh mpijob exec` instead", ""),
    "SessionChainingConfig": ("it concerns AWS alone", ""),
}  # fmt: skip
_ALGORITHM: Mapping[str, tuple[str, str]] = {
    "TrainingInputMode": ("data are in volumes, as files", ""),
    "AlgorithmName": ("SageMaker's own algorithms run there alone", "name an image instead"),
    "MetricDefinitions": ("metrics are read from what the program prints",
                          "print them as `name=value`; see docs/sdk.md"),
    "EnableSageMakerMetricsTimeSeries": ("metrics are read from what the program prints", ""),
    "TrainingImageConfig": ("pulling from a private registry takes a Secret",
                            "add imagePullSecrets to both templates"),
}  # fmt: skip


def reports(request: Request, data: Mapping[str, Any], job: CloudJob) -> Iterator[FieldReport]:
    note = (
        "" if job.name == request.training_job_name else f"written as Kubernetes has it: {job.name}"
    )
    fate = CHANGED if note else CARRIED
    yield FieldReport(("TrainingJobName",), fate, "metadata.name", note)
    yield from _algorithm(data.get("AlgorithmSpecification") or {})
    yield from _parameters(request)
    for name in request.environment:
        yield FieldReport(("Environment", name), CARRIED, f"{_POD}.containers[0].env")
    yield from _data(request, job)
    yield from _machines(data.get("ResourceConfig") or {}, job)
    yield from _stopping(data)
    for n, _tag in enumerate(request.tags):
        remedy = "write it as a label, where Kubernetes allows its name"
        yield FieldReport(
            ("Tags", n), LOST, note="tags of AWS may not be names here", remedy=remedy
        )
    for name, (note, remedy) in _WITHOUT.items():
        if data.get(name) not in (None, False, [], {}):
            yield FieldReport((name,), LOST, note=note, remedy=remedy)
        elif name in data:
            yield FieldReport((name,), CARRIED, note="off, as it is here")


def _algorithm(given: Mapping[str, Any]) -> Iterator[FieldReport]:
    path: Path = ("AlgorithmSpecification",)
    remedy = "check that it has MPI and an SSH server, and that the cluster may pull it"
    yield FieldReport((*path, "TrainingImage"), CARRIED, f"{_POD}.containers[0].image", "", remedy)
    for name in ("ContainerEntrypoint", "ContainerArguments"):
        if given.get(name):
            note = "mpirun stands before it, unless it starts ranks itself"
            yield FieldReport((*path, name), CHANGED, _COMMAND, note)
    for name, (note, remedy) in _ALGORITHM.items():
        if given.get(name):
            yield FieldReport((*path, name), LOST, note=note, remedy=remedy)


def _parameters(request: Request) -> Iterator[FieldReport]:
    own: Mapping[str, tuple[str, str]] = {
        "sagemaker_mpi_enabled": ("kind", ""),
        "sagemaker_mpi_num_of_processes_per_host": ("spec.slotsPerWorker", ""),
        "sagemaker_mpi_custom_mpi_options": (_COMMAND, "options that name hosts must go"),
        "sagemaker_program": (_COMMAND, ""),
    }
    entry = bool(request.algorithm_specification.container_entrypoint)
    program = "sagemaker_program" in request.hyper_parameters
    for name in request.hyper_parameters:
        path: Path = ("HyperParameters", name)
        if name in own and not (entry and name in ("sagemaker_mpi_custom_mpi_options",)):
            yield FieldReport(path, CARRIED, own[name][0], own[name][1])
        elif name == "sagemaker_submit_directory":
            remedy = "put the code into the image at /opt/ml/code, or mount a volume there"
            yield FieldReport(path, LOST, note="nothing fetches code from S3", remedy=remedy)
        elif name.startswith("sagemaker_"):
            yield FieldReport(path, LOST, note="it concerns SageMaker's own programs alone")
        elif program and not entry:
            yield FieldReport(path, CARRIED, _COMMAND, f"as `--{name}`")
        else:
            note = "SageMaker wrote it into /opt/ml/input/config/hyperparameters.json"
            remedy = "add it to the command, or mount that file from a ConfigMap"
            yield FieldReport(path, LOST, note=note, remedy=remedy)


def _data(request: Request, job: CloudJob) -> Iterator[FieldReport]:
    claims = {one.path: one.claim for one in job.mounts}
    for n, channel in enumerate(request.input_data_config):
        folder = f"/opt/ml/input/data/{channel.channel_name}"
        s3, files = channel.data_source.s3_data_source, channel.data_source.file_system_data_source
        where = s3.s3_uri if s3 else files.file_system_id if files else "its source"
        note = f"a volume at {folder}; nothing is fetched when the job starts"
        remedy = f"make the PersistentVolumeClaim `{claims[folder]}` with the data of {where}"
        yield FieldReport(("InputDataConfig", n), CHANGED, f"{_POD}.volumes", note, remedy)
    if request.output_data_config is not None:
        note = "what is in /opt/ml/model stays in a volume, and is not copied to S3"
        remedy = f"make the PersistentVolumeClaim `{claims['/opt/ml/model']}`"
        yield FieldReport(("OutputDataConfig",), CHANGED, f"{_POD}.volumes", note, remedy)
    if request.checkpoint_config is not None:
        claim = next(one.claim for one in job.mounts if one.name == "checkpoints")
        note = "checkpoints stay in a volume, and are not copied to S3"
        remedy = f"make the PersistentVolumeClaim `{claim}`, which all workers can write"
        yield FieldReport(("CheckpointConfig",), CHANGED, f"{_POD}.volumes", note, remedy)


def _machines(given: Mapping[str, Any], job: CloudJob) -> Iterator[FieldReport]:
    path: Path = ("ResourceConfig",)
    words = "a pod as large as the machine, less a tenth for the node itself"
    to = f"{_POD}.containers[0].resources"
    yield FieldReport((*path, "InstanceType"), CHANGED, to, words)
    if given.get("InstanceCount") is not None:
        note = f"{job.machines} pods, the launcher among them"
        yield FieldReport((*path, "InstanceCount"), CARRIED, "spec.mpiReplicaSpecs", note)
    for name, note in (
        ("VolumeSizeInGB", "pods use the node's disk; give volumes their size in their claims"),
        ("VolumeKmsKeyId", "encryption of disks is the storage class's"),
        ("KeepAlivePeriodInSeconds", "nodes do not belong to the job"),
        ("TrainingPlanArn", "capacity is the cluster's"),
    ):
        if given.get(name):
            yield FieldReport((*path, name), LOST, note=note)


def _stopping(data: Mapping[str, Any]) -> Iterator[FieldReport]:
    given = data.get("StoppingCondition") or {}
    to = "spec.runPolicy.activeDeadlineSeconds"
    if given.get("MaxRuntimeInSeconds") is not None:
        note = "it counts waiting for nodes too"
        yield FieldReport(("StoppingCondition", "MaxRuntimeInSeconds"), CHANGED, to, note)
    for name in ("MaxWaitTimeInSeconds", "MaxPendingTimeInSeconds"):
        if given.get(name) is not None:
            remedy = "set spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"
            yield FieldReport(
                ("StoppingCondition", name), LOST, note="of spot capacity", remedy=remedy
            )
    if (data.get("RetryStrategy") or {}).get("MaximumRetryAttempts") is not None:
        path: Path = ("RetryStrategy", "MaximumRetryAttempts")
        yield FieldReport(path, CHANGED, "spec.runPolicy.backoffLimit", "for every kind of failure")
