"""Every field of a Kubernetes pod template is either applied on one machine or named as not."""

from __future__ import annotations

import re
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mpi_trainer.api.kinds.pods import PodTemplate, TemplateView
from mpi_trainer.local.execute.applied_fields import APPLIED, SILENT, not_applied

SCHEMA = Path(__file__).with_name("pod-schema.txt").read_text().splitlines()[1:]
MAPS = {path.removesuffix("{}") for path in SCHEMA if path.endswith("{}")}
LEAVES = [
    path
    for path, following in zip(SCHEMA, [*SCHEMA[1:], ""], strict=True)
    if not following.startswith((f"{path}.", f"{path}[", f"{path}{{"))
]
TABLE = {path.replace("[0]", "[]") for path in (*APPLIED, *SILENT)}


def template(path: str, value: object = "x") -> PodTemplate:
    """The smallest template that has the field: one item in every list, one key in every map."""
    for step in reversed(re.findall(r"[^.\[{]+|\[\]|\{\}", path)):
        value = [value] if step == "[]" else {"any/key" if step == "{}" else step: value}
    assert isinstance(value, dict)
    return PodTemplate.of(value)


def within(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}[", f"{above}{{"))


def covered(path: str) -> bool:
    return any(within(path, entry) for entry in TABLE)


def spec(**fields: Any) -> PodTemplate:
    return PodTemplate.of({"spec": fields})


def container(**fields: Any) -> PodTemplate:
    return spec(containers=[{"name": "main", **fields}])


def test_the_schema_is_that_of_a_pod_template() -> None:
    assert len(SCHEMA) > 1000
    assert len(set(SCHEMA)) == len(SCHEMA)
    assert {"spec.containers[].env[].valueFrom.fieldRef", "spec.volumes[].nfs"} <= set(SCHEMA)


@pytest.mark.parametrize("entry", sorted(TABLE))
def test_every_entry_of_the_tables_exists_in_the_schema(entry: str) -> None:
    assert entry in SCHEMA or entry.rpartition(".")[0] in MAPS


def test_no_entry_covers_another() -> None:
    entries = [*APPLIED, *SILENT]
    assert not [(a, b) for a in entries for b in entries if a is not b and within(a, b)]


def test_every_field_is_either_applied_or_named() -> None:
    """Named once, at the highest level at which nothing is applied."""
    for path in LEAVES:
        named = not_applied(template(path))
        if covered(path):
            assert named == (), path
            continue
        (name,) = named
        # Of `limits{}` only some keys are applied, so the key itself is named.
        plain = name.replace("[0]", "[]").replace("[any/key]", "{}")
        full = plain if plain.startswith("metadata") else f"spec.{plain}"
        assert within(path, full), path
        assert not any(within(entry, full) for entry in TABLE), f"{full} is applied in part"
        above = re.sub(r"(\.\w+|\[\]|\{\})$", "", full)
        assert above in ("spec", "metadata") or any(within(entry, above) for entry in TABLE), path


def test_a_template_with_every_field_names_no_applied_one() -> None:
    whole: dict[str, Any] = {}
    for path in LEAVES:
        whole = merged(whole, template(path).content)
    named = not_applied(PodTemplate.of(whole))
    assert len(named) == len(set(named)) > 50
    expected = {name for path in LEAVES for name in not_applied(template(path))}
    # With every field present an item of a list has a name, and is called by it.
    assert {re.sub(r"\[x\]", "[0]", name) for name in named} == expected


def merged(a: Any, b: Any) -> Any:
    if isinstance(a, dict):
        return {
            **a,
            **{key: merged(a[key], value) if key in a else value for key, value in b.items()},
        }
    return [merged(a[0], b[0])] if isinstance(a, list) else a


def view_paths(kind: Any, path: str = "") -> set[str]:
    """The leaves of the typed view, in the schema's notation."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [k for k in inner if k is not type(None)]
        return set().union(*(view_paths(k, path) for k in kinds))
    if origin is tuple:
        return view_paths(inner[0], f"{path}[]" if inner[0] is not str else path)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return set().union(*(view_paths(f.type, f"{path}.{f.encode_name}") for f in fields))
    return {path.removeprefix(".")}


def test_every_applied_field_is_one_that_the_view_can_read() -> None:
    """A field that nobody decodes cannot have an effect."""
    read = view_paths(TemplateView)
    applied = {entry.replace("[0]", "[]") for entry in APPLIED}
    leaves = {path for path in LEAVES if any(within(path, entry) for entry in applied)}
    leaves |= {entry.rpartition(".")[0] for entry in applied if entry.rpartition(".")[0] in MAPS}
    assert {path.removesuffix("{}") for path in leaves} <= read


def test_every_field_that_the_view_reads_is_applied_but_for_these() -> None:
    """They are read to check a job, or to run it on a cluster."""
    container = "spec.containers[]"
    unused = {
        "spec.automountServiceAccountToken",
        "spec.dnsConfig.searches",
        "spec.hostIPC",
        "spec.hostNetwork",
        "spec.hostPID",
        "spec.hostUsers",
        "spec.nodeName",
        "spec.overhead",
        "spec.priorityClassName",
        "spec.serviceAccountName",
        "spec.shareProcessNamespace",
        "spec.volumes[].hostPath.type",
        f"{container}.env[].valueFrom.resourceFieldRef",
        f"{container}.resources.limits",
        f"{container}.resources.requests",
        f"{container}.restartPolicy",
    }
    kept = ("spec.initContainers", "spec.securityContext", f"{container}.securityContext")
    read = {p for p in view_paths(TemplateView) if not p.startswith(kept)}
    assert {path for path in read if not covered(path)} == unused


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (container(livenessProbe={"exec": {"command": ["x"]}}), ("containers[0].livenessProbe",)),
        (spec(containers=[{"name": "a"}, {"name": "b"}]), ("containers[1]",)),
        (spec(initContainers=[{"name": "a"}, {"name": "b"}]), ("initContainers",)),
        (spec(volumes=[{"name": "data", "nfs": {"server": "s"}}]), ("volumes[data].nfs",)),
        (
            container(
                resources={"limits": {"cpu": 1, "nvidia.com/gpu": 2}, "requests": {"cpu": 1}}
            ),
            ("containers[0].resources.limits[nvidia.com/gpu]", "containers[0].resources.requests"),
        ),
        (
            container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "x"}}}]),
            ("containers[0].env[A].valueFrom.resourceFieldRef",),
        ),
        (spec(securityContext={"runAsUser": 1, "fsGroup": 2}), ("securityContext",)),
        (spec(hostNetwork=False, priority=0), ("hostNetwork", "priority")),
        (spec(someday={"a": 1}), ("someday",)),
        (PodTemplate.of({"status": {"phase": "x"}}), ("status",)),
    ],
)
def test_fields_are_named_by_short_paths(given: PodTemplate, named: tuple[str, ...]) -> None:
    assert not_applied(given) == named


def test_a_field_is_named_once_however_often_it_is_there() -> None:
    mounts = [
        {"name": "data", "mountPath": path, "mountPropagation": "None"} for path in ("/a", "/b")
    ]
    named = not_applied(container(volumeMounts=mounts))
    assert named == ("containers[0].volumeMounts[data].mountPropagation",)


def test_names_come_in_the_order_of_the_template() -> None:
    given = PodTemplate.of(
        {
            "metadata": {"finalizers": ["x"]},
            "spec": {
                "affinity": {"nodeAffinity": {"x": 1}},
                "containers": [{"name": "a", "stdin": True, "tty": True}],
                "volumes": [{"name": "z", "nfs": {"a": 1}}, {"name": "b", "csi": {"a": 1}}],
            },
        }
    )
    assert not_applied(given) == (
        "metadata.finalizers",
        "affinity",
        "containers[0].stdin",
        "containers[0].tty",
        "volumes[z].nfs",
        "volumes[b].csi",
    )


@pytest.mark.parametrize("nothing", [None, {}, [], ""])
def test_a_field_that_holds_nothing_is_not_missed(nothing: object) -> None:
    """`securityContext: {}` and `creationTimestamp: null` stand in most exported files."""
    metadata = {"creationTimestamp": nothing}
    given = PodTemplate.of({"metadata": metadata, "spec": {"securityContext": nothing}})
    assert not_applied(given) == ()


def test_an_empty_template_misses_nothing() -> None:
    assert not_applied(PodTemplate()) == ()


SSHD = "/usr/sbin/sshd"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, ()),
        ({"command": [SSHD, "-De"]}, ()),
        ({"args": [SSHD, "-De", "-f", "/home/me/.sshd_config"]}, ()),
        ({"command": ["/bin/sh", "-c"], "args": [f"exec {SSHD} -De"]}, ()),
        ({"command": ["bash", "-lc", f"{SSHD} -De"]}, ()),
        ({"command": ["sleep", "infinity"]}, ("containers[0].command",)),
        ({"command": ["sh", "-c", f"{SSHD} -De & ./own"]}, ("containers[0].command",)),
        ({"command": ["sh", "-c", f"pip install x && {SSHD} -De"]}, ("containers[0].command",)),
        (
            {"command": ["sh"], "args": ["-c", "./prepare; sshd"]},
            ("containers[0].args", "containers[0].command"),
        ),
        ({"args": ["worker"]}, ("containers[0].args",)),
    ],
)
def test_a_worker_misses_a_command_that_is_not_sshd(
    fields: dict[str, Any], named: tuple[str, ...]
) -> None:
    assert not_applied(container(**fields), "worker") == named
    assert not_applied(container(**fields), "launcher") == ()
