"""JobSet's spec, as its own definition has it, for the runtimes that hold one as a template.

`structural` keeps all that the definition checks and drops its descriptions; where it repeats the
pod template, ours is put in, so that all kinds take the same pods.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools.crds import podtemplate
from tools.crds.podtemplate import Schema

STORED: Final = Path(__file__).with_name("jobset.json")


def structural(definition: Mapping[str, Any]) -> Schema:
    """The spec's schema, out of JobSet's CustomResourceDefinition, without the pods in it."""
    root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec: Schema = _bare(root["properties"]["spec"])
    _job(spec)["template"] = {}
    return spec


def stored() -> Schema:
    """The structure that is kept beside this file, with our pods."""
    spec: Schema = json.loads(STORED.read_text())["schema"]
    _job(spec)["template"] = podtemplate.stored()
    # Kubernetes 1.27 cannot read this rule, and JobSet has it again for what is made of a runtime.
    del spec["properties"]["volumeClaimPolicies"]["items"]["x-kubernetes-validations"]
    return spec


def _job(spec: Schema) -> dict[str, Any]:
    """The fields of the Job in a replicated job."""
    replicated = spec["properties"]["replicatedJobs"]["items"]["properties"]
    fields: dict[str, Any] = replicated["template"]["properties"]["spec"]["properties"]
    return fields


def _bare(node: Any) -> Any:
    if isinstance(node, list):
        return [_bare(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _bare(child) for name, child in part.items()}
        if key == "properties"
        else _bare(part)
        for key, part in node.items()
        if key != "description"
    }
