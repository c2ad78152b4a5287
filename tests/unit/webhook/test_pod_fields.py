"""Every field of a pod is harmless or asked about, and only one of both (S-6, W-2, W-7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpi_trainer.webhook import borrowed_rights
from mpi_trainer.webhook.pod_fields import GUARDED, HARMLESS, PLACEMENT, SECRET
from tools import rightsdocs

ROOT = Path(__file__).parents[3]
SCHEMA = (ROOT / "tests" / "unit" / "local" / "pod-schema.txt").read_text().splitlines()[1:]
BOTH = (*HARMLESS, *GUARDED)

# Subtrees of more than plain values that are harmless as they are, whatever will be added to them.
WHOLE = {
    "spec.affinity",
    "spec.dnsConfig",
    "spec.hostAliases",
    "spec.imagePullSecrets",
    "spec.os",
    "spec.readinessGates",
    "spec.resourceClaims",
    "spec.resources",
    "spec.schedulingGates",
    "spec.tolerations",
    "spec.topologySpreadConstraints",
    "spec.volumes[].configMap",
    "spec.volumes[].downwardAPI",
    "spec.volumes[].emptyDir",
    "spec.volumes[].image",
    "spec.volumes[].persistentVolumeClaim",
    "spec.volumes[].projected.sources[].clusterTrustBundle",
    "spec.volumes[].projected.sources[].configMap",
    "spec.volumes[].projected.sources[].downwardAPI",
    "spec.volumes[].projected.sources[].secret.items",
    "spec.volumes[].secret.items",
}
WHOLE_IN_CONTAINERS = re.compile(
    r"spec\.(?:initContainers|containers)\[\]\.(?:env\[\]\.valueFrom\.\w+|envFrom\[\]\.configMapRef"
    r"|resizePolicy|resources|restartPolicyRules|volumeDevices"
    r"|(?:\w+Probe|lifecycle\.\w+)\.(?:exec|grpc|sleep|httpGet\.httpHeaders))"
)


def above(path: str) -> str:
    return path.removesuffix("[]")


def within(path: str, entry: str) -> bool:
    entry = above(entry)
    return path == entry or path.startswith((f"{entry}.", f"{entry}[", f"{entry}{{"))


def leaves(paths: list[str]) -> list[str]:
    following = [*paths[1:], ""]
    return [p for p, n in zip(paths, following, strict=True) if not within(n, p) or n == p]


def defined(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The paths of a definition's schema, in the words of `pod-schema.txt`."""
    if path:
        yield path.removeprefix(".")
    for name, below in (schema.get("properties") or {}).items():
        yield from defined(below, f"{path}.{name}")
    if isinstance(schema.get("items"), dict) and schema["items"].get("properties"):
        for found in defined(schema["items"], f"{path}[]"):
            if found != f"{path}[]".removeprefix("."):
                yield found


def of_our_definition() -> list[str]:
    crd = yaml.safe_load((ROOT / "manifests" / "crds" / "kubeflow.org_mpijobs.yaml").read_text())
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    role = spec["properties"]["mpiReplicaSpecs"]["additionalProperties"]
    return list(defined(role["properties"]["template"]))


def template(path: str, value: object) -> borrowed_rights.SourceTemplate:
    """The smallest template that has the field."""
    for step in reversed(re.findall(r"[^.\[{]+|\[\]|\{\}", path)):
        value = [value] if step == "[]" else {"any/key" if step == "{}" else step: value}
    return borrowed_rights.SourceTemplate("Worker", (), value)


@pytest.mark.parametrize("paths", [SCHEMA, of_our_definition()], ids=["kubernetes", "definition"])
def test_every_field_of_a_pod_is_in_exactly_one_list(paths: list[str]) -> None:
    """A Kubernetes that brings a new field makes this fail until somebody has decided."""
    assert len(paths) > 1000
    found = {path: [e for e in BOTH if within(path, e)] for path in leaves(paths)}
    assert [path for path, entries in found.items() if len(entries) != 1] == []


def test_both_lists_name_fields_that_exist() -> None:
    assert [entry for entry in BOTH if above(entry) not in SCHEMA] == []
    assert len(set(BOTH)) == len(BOTH)
    assert set(PLACEMENT) <= set(HARMLESS)


def test_only_these_subtrees_are_harmless_with_what_they_may_hold_one_day() -> None:
    whole = {e for e in HARMLESS if any(p != e and within(p, e) and "{}" not in p for p in SCHEMA)}
    assert {entry for entry in whole if not WHOLE_IN_CONTAINERS.fullmatch(entry)} == WHOLE


def test_harmless_field_is_no_claim_and_any_other_is() -> None:
    for path in leaves(SCHEMA):
        asked = GUARDED.get(next(e for e in BOTH if within(path, e)))
        found = borrowed_rights.claims(
            [template(path, "other-ssh" if asked is SECRET else "anything")]
        )
        assert len(found) == (asked is not None), path


@pytest.mark.parametrize(
    "path",
    [
        "someday",
        "metadata.someday",
        "spec.someday",
        "spec.securityContext.someday",
        "spec.volumes[].someday",
        "spec.volumes[].projected.sources[].someday",
        "spec.containers[].someday",
        "spec.initContainers[].securityContext.someday",
        "spec.containers[].env[].valueFrom.someday",
        "spec.containers[].ports[].someday",
        "spec.containers[].livenessProbe.someday",
    ],
)
@pytest.mark.parametrize("value", [True, False, {}, {"a": 1}, "x", 3])
def test_field_of_a_later_kubernetes_is_a_claim(path: str, value: object) -> None:
    (claim,) = borrowed_rights.claims([template(path, value)])
    assert "does not know the field" in claim.effect


@pytest.mark.parametrize("content", [None, [], "x", 3, {"spec": []}, {"spec": {"containers": {}}}])
def test_what_is_no_template_is_no_exception(content: object) -> None:
    borrowed_rights.claims([borrowed_rights.SourceTemplate("Worker", (), content)])
    borrowed_rights.values_by_path([borrowed_rights.SourceTemplate("Worker", (), content)])


FREE: list[tuple[str, object]] = [
    ("spec.serviceAccountName", "default"),
    ("spec.serviceAccount", "default"),
    ("spec.hostNetwork", False),
    ("spec.hostPID", False),
    ("spec.hostUsers", False),
    ("spec.priority", 0),
    ("spec.preemptionPolicy", "Never"),
    ("spec.securityContext.runAsUser", 1000),
    ("spec.securityContext.runAsNonRoot", True),
    ("spec.securityContext.sysctls[]", {"name": "net.ipv4.tcp_rmem", "value": "1 2 3"}),
    ("spec.containers[].securityContext.privileged", False),
    ("spec.containers[].securityContext.allowPrivilegeEscalation", False),
    ("spec.containers[].securityContext.procMount", "Default"),
    ("spec.containers[].securityContext.seccompProfile.type", "RuntimeDefault"),
    ("spec.containers[].securityContext.seLinuxOptions.type", "container_t"),
    ("spec.containers[].securityContext.capabilities.add[]", "SYS_CHROOT"),
    ("spec.containers[].ports[].hostPort", 0),
    ("spec.volumes[].secret.secretName", "s3-credentials"),
    ("spec.volumes[].secret.secretName", "hf-token-prod1"),
    ("spec.volumes[].projected.sources[].secret.name", "s3-credentials"),
    ("spec.containers[].envFrom[].secretRef.name", "s3"),
    ("spec.imagePullSecrets[].name", "registry"),
]
BOUND: list[tuple[str, object]] = [
    ("spec.serviceAccount", "admin"),
    ("spec.hostUsers", True),
    ("spec.preemptionPolicy", "PreemptLowerPriority"),
    ("spec.securityContext.runAsUser", 0),
    ("spec.securityContext.runAsUser", "0"),
    ("spec.containers[].securityContext.runAsUser", 0),
    ("spec.containers[].securityContext.runAsUser", False),
    ("spec.containers[].securityContext.runAsNonRoot", False),
    ("spec.securityContext.sysctls[]", {"name": "kernel.msgmax", "value": "1"}),
    ("spec.securityContext.sysctls[]", {"name": ["kernel.msgmax"]}),
    ("spec.containers[].securityContext.seccompProfile.type", "Unconfined"),
    ("spec.containers[].securityContext.appArmorProfile.type", "Unconfined"),
    ("spec.containers[].securityContext.seLinuxOptions.type", "spc_t"),
    ("spec.containers[].securityContext.capabilities.add[]", "SYS_ADMIN"),
    ("spec.containers[].securityContext.capabilities.add[]", "ALL"),
    ("spec.containers[].securityContext.capabilities.add[]", {"a": 1}),
    ("spec.containers[].volumeMounts[].mountPropagation", "Bidirectional"),
    ("spec.containers[].ports[].hostPort", 80),
    ("spec.volumes[].secret.secretName", "other-ssh"),
    ("spec.volumes[].secret.secretName", "other-mpi-ssh-auth"),
    ("spec.volumes[].secret.secretName", "builder-token-x7k2p"),
    ("spec.volumes[].secret.secretName", "builder-dockercfg-x7k2p"),
    ("spec.volumes[].projected.sources[].secret.name", "other-ssh"),
    ("spec.volumes[].hostPath", {}),
]


@pytest.mark.parametrize(("path", "value"), FREE)
def test_value_that_takes_nothing_is_no_claim(path: str, value: object) -> None:
    assert borrowed_rights.claims([template(path, value)]) == ()


@pytest.mark.parametrize(("path", "value"), BOUND)
def test_value_that_takes_something_is_a_claim(path: str, value: object) -> None:
    assert len(borrowed_rights.claims([template(path, value)])) == 1


def test_apparmor_is_not_left_by_its_old_annotation() -> None:
    name = "container.apparmor.security.beta.kubernetes.io/main"
    for value, number in (("unconfined", 1), ("runtime/default", 0)):
        content = {"metadata": {"annotations": {name: value, "team": "a"}}}
        assert (
            len(borrowed_rights.claims([borrowed_rights.SourceTemplate("Worker", (), content)]))
            == number
        )


def test_docs_tell_what_is_asked() -> None:
    assert rightsdocs.PAGE.read_text() == rightsdocs.page(rightsdocs.PAGE.read_text()), (
        "run `make docs` and read the diff: administrators do"
    )
