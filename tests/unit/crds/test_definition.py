"""The definitions are our types, small enough to apply, and never lose a stored version."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tools.crds import definition, schemas
from tools.crds.__main__ import FOLDER, main
from tools.crds.beside import merged
from tools.crds.podtemplate import structural

SPEC = definition.definition()["spec"]
VERSION = SPEC["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]["properties"]


@pytest.mark.parametrize("kind", definition.KINDS, ids=lambda kind: kind.name)
def test_the_committed_file_is_what_the_types_say(kind: definition.Kind) -> None:
    assert (FOLDER / kind.file).read_text() == definition.text(kind)
    assert f"- {kind.file}\n" in (FOLDER / "kustomization.yaml").read_text()


def test_check_finds_nothing_out_of_step() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("kind", definition.KINDS, ids=lambda kind: kind.name)
def test_plain_apply_can_hold_it_in_its_annotation(kind: definition.Kind) -> None:
    """The API server takes 256 KiB of annotations; kubectl keeps what it applies there, as JSON."""
    assert len(json.dumps(definition.definition(kind))) < 200_000


def test_every_field_of_ours_is_described_and_no_other() -> None:
    for kind, described in schemas.DESCRIPTIONS.items():
        names = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert names == set(described), kind.__name__


def test_the_pod_spec_keeps_what_newer_clusters_add() -> None:
    replica = ROOT["spec"]["properties"]["mpiReplicaSpecs"]["additionalProperties"]
    pod = replica["properties"]["template"]["properties"]["spec"]
    assert pod["x-kubernetes-preserve-unknown-fields"] is True
    assert "description" not in json.dumps(pod["properties"]["containers"])


def test_an_api_server_s_schema_becomes_structural() -> None:
    core = "#/components/schemas/"
    schemas = {
        "io.k8s.api.core.v1.PodTemplateSpec": {
            "type": "object",
            "description": "gone",
            "properties": {"spec": {"default": {}, "allOf": [{"$ref": core + "Pod"}]}},
        },
        "Pod": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "default": ""},
                "protocol": {"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
                "port": {"$ref": core + "io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
            },
        },
    }
    pod = structural({"components": {"schemas": schemas}})["properties"]["spec"]
    assert pod["properties"]["name"] == {"type": "string"}
    assert pod["properties"]["protocol"] == {"type": "string", "default": "TCP"}
    assert pod["properties"]["port"]["x-kubernetes-int-or-string"] is True


def test_no_rule_of_the_train_job_forbids_a_change() -> None:
    """CTL-13: Kueue writes jobs back without their explicit zeros, and must be let."""
    assert "oldSelf" not in definition.text(definition.TRAIN_JOB)


def _existing(stored: list[str], *names: str) -> dict[str, Any]:
    versions = [{"name": name, "served": True, "storage": True, "schema": name} for name in names]
    metadata = {"name": "mpijobs.kubeflow.org"}
    return {
        "metadata": metadata,
        "spec": {"versions": versions},
        "status": {"storedVersions": stored},
    }


def test_a_version_that_objects_are_stored_in_stays_unserved() -> None:
    """API-4."""
    ours = definition.definition()
    both = merged(ours, _existing(["v1"], "v1", "v1alpha2"))
    first, second = both.definition["spec"]["versions"]
    assert first == VERSION
    assert second == {"name": "v1", "served": False, "storage": False, "schema": "v1"}
    assert len(ours["spec"]["versions"]) == 1, "ours is not changed in place"
    assert both.remarks == (
        "v1: objects are stored in it; kept, unserved",
        "v1: was served; its clients must move",
        "v1alpha2: nothing is stored in it; dropped",
    )


def test_upstream_s_definition_leaves_nothing_to_keep() -> None:
    both = merged(definition.definition(), _existing(["v2beta1"], "v2beta1"))
    assert both.definition == definition.definition()
    assert both.remarks == ()


def test_another_kind_s_definition_is_refused() -> None:
    other = _existing([], "v1") | {"metadata": {"name": "tfjobs.kubeflow.org"}}
    with pytest.raises(ValueError, match=r"tfjobs\.kubeflow\.org"):
        merged(definition.definition(), other)
