"""Structure: all errors in one pass, and never an exception."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.errors import Path
from mpi_trainer.api.kinds.mpijob import MPIJob
from mpi_trainer.api.yaml.decode import decode
from tests.unit.api.building import CONTAINER, POD, ROLES, job


def found(*changes: tuple[Path, Any]) -> list[str]:
    return [str(error) for error in decode(MPIJob, job(*changes)).errors]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec",), [], "spec: Invalid type: must be an object, not a list; write an object"),
        (("spec", "slotsPerWorker"), True, "must be an integer, not a boolean"),
        (("spec", "slotsPerWorker"), 1.5, "must be an integer, not a number"),
        (("spec", "slotsPerWorker"), "many", 'Invalid type: "many": must be an integer'),
        (("spec", "slotsPerWorker"), -(2**31) - 1, "must be between -2147483648 and"),
        (("spec", "runPolicy"), {"activeDeadlineSeconds": 2**63}, "use a smaller number"),
        (("spec", "runLauncherAsWorker"), "true", "must be true or false, not a string; remove"),
        (("spec", "runLauncherAsWorker"), 1, "must be true or false, not an integer"),
        (("spec", "mpiImplementation"), False, 'put it in quotes: "false"'),
        (("spec", "zzz"), 1, "the fields here are launcherCreationPolicy, mpiImplementation"),
        (("metadata", "labels"), "x", "metadata.labels: Invalid type"),
        (("metadata", "labels"), {"a": 1}, 'metadata.labels.a: Invalid type: 1: must be a string'),
        (("metadata", "labels"), {1: "a"}, "must be a string as key, not an integer"),
        (("metadata", "labels"), {"a": "\ud800"}, "has no JSON form"),
        (("metadata", "creationTimestamp"), "yesterday", "must be a time such as"),
        (("metadata", "finalizers"), "x", "must be a list, not a string; start each item with"),
        (("metadata", "ownerReferences"), [{"a": object()}], "has no JSON form"),
        (("status",), {"conditions": [{"type": "x"}]}, "conditions[0].status: Required value"),
        (("status",), {"conditions": [{"type": 1, "status": "x"}]}, "conditions[0].type: Invalid"),
        ((*ROLES, "Worker", "template"), "x", "Worker.template: Invalid type"),
        ((*POD, "terminationGracePeriodSeconds"), 2**70, "has no JSON form"),
        ((*POD, "hostNetwork"), "yes", "template.spec.hostNetwork: Invalid type"),
        ((*POD, "anything"), float("nan"), "template.spec.anything: Invalid type: has no JSON"),
        ((*POD, "anything"), {3: 1}, "has no JSON form"),
        ((*CONTAINER, "ports"), [{"x": b""}], "ports[0].x: Invalid type"),
        ((*CONTAINER, "resources"), {"limits": {"cpu": True}}, "string or an integer or a number"),
        ((*CONTAINER, "resources"), {"limits": {"cpu": "\udfff"}}, "has no JSON form"),
        ((*POD, "containers"), [None], "containers[0]: Invalid type: null"),
        ((*POD, "containers"), "x", "containers: Invalid type"),
    ],
)  # fmt: skip
def test_structural_error_names_field_and_remedy(path: Path, value: Any, message: str) -> None:
    [error] = found((path, value))
    assert message in error


def test_all_errors_are_found_at_once() -> None:
    assert len(found((("spec", "a"), 1), (("metadata", "b"), 1), ((*POD, "volumes"), 3))) == 3


def test_misspelt_key_beside_the_right_one_is_still_unknown() -> None:
    decoded = decode(MPIJob, job((("spec", "slotsPerworker"), 1), (("spec", "slotsPerWorker"), 2)))
    assert "did you mean `slotsPerWorker`?" in str(decoded.errors[0])
    assert decoded.value.slots == 2
    assert ("spec", "slotsPerWorker") not in decoded.doubtful


def test_key_that_is_no_string_is_an_unknown_field() -> None:
    [error] = decode(MPIJob, {3: 1}).errors
    assert str(error).startswith("3: Unknown field")


def test_a_pod_s_dns_configuration_is_one() -> None:
    """Ours is added to it."""
    [error] = found(((*CONTAINER[:-2], "dnsConfig"), " "))
    assert "dnsConfig: Invalid type" in str(error)
    assert not found(((*CONTAINER[:-2], "dnsConfig"), {"options": [{"name": "ndots"}]}))


def test_data_that_is_no_object_gives_an_empty_value() -> None:
    decoded = decode(MPIJob, "text")
    assert decoded.value == MPIJob()
    assert "must be an object, not a string" in str(decoded.errors[0])


def test_whole_float_is_an_integer() -> None:
    assert decode(MPIJob, job((("spec", "slotsPerWorker"), 4.0))).value.slots == 4


def test_value_that_may_be_a_secret_is_not_shown() -> None:
    [error] = found(((*CONTAINER, "env"), [{"name": "TOKEN", "value": 4711}]))
    assert "4711" not in error


def test_unknown_field_of_a_pod_passes_through_untouched() -> None:
    decoded = decode(MPIJob, job(((*POD, "futureField"), {"deep": [1, None]})))
    assert decoded.errors == decoded.warnings == ()
    assert decoded.value.worker.template.content["spec"]["futureField"] == {"deep": [1, None]}


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ((*CONTAINER, "resource"), "resources"),
        ((*CONTAINER, "volumemounts"), "volumeMounts"),
        ((*POD, "nodeselector"), "nodeSelector"),
        ((*POD, "volume"), "volumes"),
    ],
)
def test_near_miss_in_a_pod_is_a_warning(path: Path, meant: str) -> None:
    decoded = decode(MPIJob, job((path, {})))
    assert decoded.errors == ()
    assert f"did you mean `{meant}`?" in str(decoded.warnings[0])


def test_faulty_parts_are_left_out_of_the_template_that_validation_sees() -> None:
    decoded = decode(
        MPIJob,
        job(
            ((*CONTAINER, "command"), ["mpirun", 2]),
            ((*CONTAINER, "env"), [{"name": "A", "value": 1}]),
            ((*POD, "volumes"), [3, {"name": 4}]),
        ),
    )
    assert len(decoded.errors) == 4
    [container] = decoded.value.worker.template.view.spec.containers
    assert (container.command, container.env[0].value) == ((), None)


def test_fault_inside_a_part_that_is_left_out_already_does_no_harm() -> None:
    volumes = [{"name": "a", "configMap": {"items": [3, {"mode": "x"}, {"key": 1}]}}]
    assert len(found(((*POD, "volumes"), volumes))) == 3


def test_bottomless_data_is_refused() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    assert "nested too deeply" in found(((*POD, "affinity"), deep))[0]
