"""The request CreateTrainingJob of SageMaker, as far as a job on Kubernetes has use for it.

The answer of DescribeTrainingJob has the same fields, and more that are left aside.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mpi_trainer.api.kinds.meta import Int32, PartlyRead

Text = str | int | float | bool


class Algorithm(PartlyRead, frozen=True, rename="pascal"):
    training_image: str = ""
    container_entrypoint: tuple[str, ...] = ()
    container_arguments: tuple[str, ...] = ()


class S3Source(PartlyRead, frozen=True, rename="pascal"):
    s3_uri: str = ""


class FileSystem(PartlyRead, frozen=True, rename="pascal"):
    file_system_id: str = ""
    directory_path: str = ""


class DataSource(PartlyRead, frozen=True, rename="pascal"):
    s3_data_source: S3Source | None = None
    file_system_data_source: FileSystem | None = None


class Channel(PartlyRead, frozen=True, rename="pascal"):
    channel_name: str = ""
    data_source: DataSource = DataSource()


class Machines(PartlyRead, frozen=True, rename="pascal"):
    instance_type: str = ""
    instance_count: Int32 | None = None
    instance_groups: tuple[Mapping[str, Text], ...] = ()


class Stopping(PartlyRead, frozen=True, rename="pascal"):
    max_runtime_in_seconds: Int32 | None = None


class Retries(PartlyRead, frozen=True, rename="pascal"):
    maximum_retry_attempts: Int32 | None = None


class Checkpoints(PartlyRead, frozen=True, rename="pascal"):
    s3_uri: str = ""
    local_path: str = ""


class Output(PartlyRead, frozen=True, rename="pascal"):
    s3_output_path: str = ""


class Request(PartlyRead, frozen=True, rename="pascal"):
    training_job_name: str = ""
    algorithm_specification: Algorithm = Algorithm()
    hyper_parameters: Mapping[str, Text] = {}
    environment: Mapping[str, Text] = {}
    input_data_config: tuple[Channel, ...] = ()
    output_data_config: Output | None = None
    resource_config: Machines = Machines()
    stopping_condition: Stopping = Stopping()
    retry_strategy: Retries | None = None
    checkpoint_config: Checkpoints | None = None
    tags: tuple[Mapping[str, Text], ...] = msgspec.field(default=())
