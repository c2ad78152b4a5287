"""What holds for every job, not only for those we thought of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api.defaults import mpijob_with_defaults
from mpi_trainer.api.errors import InvalidJob
from mpi_trainer.api.kinds.conditions import Condition
from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.mpijob import (
    MPIJob,
    MPIJobSpec,
    MPIJobStatus,
    ReplicaSpec,
    ReplicaStatus,
    RunPolicy,
    SchedulingPolicy,
    to_wire,
)
from mpi_trainer.api.kinds.pods import PodTemplate
from mpi_trainer.api.validation import mpijob as mpijob_rules
from mpi_trainer.api.validation import mpijob_warnings
from mpi_trainer.api.yaml import documents, load
from mpi_trainer.api.yaml.decode import decode

quick = settings(max_examples=20)

texts = st.text("aB0-_./:= \n\x00ü😀", max_size=5)
words = st.one_of(texts, st.sampled_from(["Never", "Running", "a", "x-1", "1Gi", "500m", "/x"]))
int32 = st.one_of(st.integers(-1, 3), st.integers(-(2**31), 2**31 - 1))
amounts = st.one_of(words, st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False))
maps = st.dictionaries(words, words, max_size=2)
times = st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC))


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(texts, inner, max_size=2)),
    max_leaves=5,
)
containers = st.fixed_dictionaries(
    {},
    optional={
        "name": words,
        "image": words,
        "workingDir": words,
        "command": st.lists(words, max_size=2),
        "env": st.lists(st.fixed_dictionaries({"name": words, "value": words}), max_size=2),
        "resources": st.fixed_dictionaries(
            {
                section: st.dictionaries(
                    st.one_of(words, st.sampled_from(["cpu", "nvidia.com/gpu"])),
                    amounts,
                    max_size=2,
                )
                for section in ("requests", "limits")
            }
        ),
        "volumeMounts": st.lists(
            st.fixed_dictionaries({"name": words, "mountPath": words}), max_size=2
        ),
        "xAnything": json,
    },
)
templates = st.builds(
    PodTemplate.of,
    st.fixed_dictionaries(
        {},
        optional={
            "metadata": st.fixed_dictionaries({"labels": maps, "annotations": maps}),
            "spec": st.fixed_dictionaries(
                {"containers": st.lists(containers, max_size=2)},
                optional={
                    "volumes": st.lists(st.fixed_dictionaries({"name": words}), max_size=2),
                    "restartPolicy": words,
                    "affinity": json,
                },
            ),
        },
    ),
)
policies = st.builds(
    RunPolicy,
    clean_pod_policy=optional(words),
    ttl_seconds_after_finished=optional(int32),
    active_deadline_seconds=optional(st.integers(-(2**63), 2**63 - 1)),
    backoff_limit=optional(int32),
    suspend=optional(st.booleans()),
    managed_by=optional(words),
    scheduling_policy=optional(
        st.builds(
            SchedulingPolicy,
            min_available=optional(int32),
            queue=optional(words),
            min_resources=optional(st.dictionaries(words, amounts, max_size=2)),
            schedule_timeout_seconds=optional(int32),
        )
    ),
)
replicas = st.builds(
    ReplicaSpec, replicas=optional(int32), template=templates, restart_policy=optional(words)
)
specs = st.builds(
    MPIJobSpec,
    slots_per_worker=optional(int32),
    run_launcher_as_worker=optional(st.booleans()),
    run_policy=policies,
    mpi_replica_specs=optional(
        st.dictionaries(
            st.one_of(st.sampled_from(["Launcher", "Worker"]), words), replicas, max_size=3
        )
    ),
    ssh_auth_mount_path=optional(words),
    launcher_creation_policy=optional(words),
    mpi_implementation=optional(words),
)
statuses = st.builds(
    MPIJobStatus,
    conditions=st.lists(
        st.builds(Condition, type=words, status=words, last_update_time=optional(times)), max_size=2
    ).map(tuple),
    replica_statuses=st.dictionaries(words, st.builds(ReplicaStatus, active=int32), max_size=2),
    start_time=optional(times),
)
metas = st.builds(ObjectMeta, name=words, namespace=words, labels=maps, annotations=maps)
jobs = st.builds(MPIJob, metadata=metas, spec=specs, status=statuses)


@quick
@given(jobs)
def test_decoding_the_wire_form_gives_the_job_back(job: MPIJob) -> None:
    decoded = decode(MPIJob, to_wire(job))
    assert decoded.errors == ()
    assert decoded.value == job


@quick
@given(jobs)
def test_defaults_are_idempotent(job: MPIJob) -> None:
    once = mpijob_with_defaults(job)
    assert mpijob_with_defaults(once) == once


@quick
@given(jobs)
def test_validation_never_raises(job: MPIJob) -> None:
    for candidate in (job, mpijob_with_defaults(job)):
        mpijob_rules.errors(candidate)
        mpijob_warnings.warnings(candidate)


@quick
@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec"]), json))
def test_any_data_is_a_job_or_a_list_of_errors(data: dict[str, Any]) -> None:
    identity = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    for candidate in (data, {**data, **identity}):
        assert load.job(candidate).errors


yaml_like = st.one_of(
    st.text(max_size=20),
    st.lists(
        st.sampled_from(
            ["a", "b", ": ", "- ", "\n", "  ", "&x ", "*x", "[", "]", "{", "}", ", ", "<<", "? ",
             "'", '"', "|", ">", "!!str ", "!t ", "%", "---\n", "...\n", "#", "\t", "1", ".inf",
             "~", "\\", "\r", "\ufeff", "\x85"]
        ),
        max_size=25,
    ).map("".join),
)  # fmt: skip


@settings(max_examples=150)
@given(yaml_like)
def test_any_text_is_documents_or_a_refusal_with_a_place(text: str) -> None:
    try:
        found = documents.parse(text, "f")
    except InvalidJob as refusal:
        assert all(error.position and error.remedy for error in refusal.errors)
    else:
        assert all(isinstance(document.data, dict) for document in found)
