"""The definition of MPIJobs with the older versions, which our webhook converts: an overlay.

The older versions take any field: what is stored in them was checked by the definition of its time,
and what is written in them now is checked as v2beta1, by admission.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

from tools.crds import definition

FILE: Final = "kubeflow.org_mpijobs.yaml"
OLDER: Final = ("v1", "v1alpha2", "v1alpha1")
SERVED: Final = ("v1",)
"""the others are there for objects that are stored as them"""
_HEADER: Final = """\
# Made by `make manifests`; do not edit. The definition of ../../crds, with older versions that the
# webhook converts. The webhook itself writes caBundle.
"""


def text() -> str:
    made = converting(definition.definition())
    return _HEADER + yaml.safe_dump(made, sort_keys=False, width=200, default_flow_style=None)


def converting(made: dict[str, Any], namespace: str = "mpi-trainer") -> dict[str, Any]:
    """The same definition, with the older versions and who converts them."""
    place = {"name": "mpi-trainer-webhook", "namespace": namespace, "path": "/convert-mpijob"}
    webhook = {"clientConfig": {"service": place}, "conversionReviewVersions": ["v1"]}
    spec = made["spec"]
    versions = [*spec["versions"], *map(_version, OLDER)]
    conversion = {"strategy": "Webhook", "webhook": webhook}
    return {**made, "spec": {**spec, "versions": versions, "conversion": conversion}}


def _version(name: str) -> dict[str, Any]:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    served = name in SERVED
    warning = f"kubeflow.org/{name} MPIJob is an older version; use kubeflow.org/v2beta1"
    deprecated = {"deprecated": True, "deprecationWarning": warning} if served else {}
    return {
        "name": name,
        "served": served,
        "storage": False,
        **deprecated,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
