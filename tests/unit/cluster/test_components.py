"""The pinned components: enough is committed to build each of them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tools.cluster import addons
from tools.cluster.build import build_key, extra_sums, overlay
from tools.cluster.components import COMPONENTS, KUBERNETES_VERSION, OPTIONAL, Component
from tools.cluster.spec import ADDONS, Spec, checked, components_of

BUILT = COMPONENTS | OPTIONAL
EVERY = pytest.mark.parametrize("component", BUILT.values(), ids=BUILT)


@EVERY
def test_version_and_hash_are_exact(component: Component) -> None:
    assert re.fullmatch(r"v\d+\.\d+\.\d+", component.version)
    assert re.fullmatch(r"h1:[A-Za-z0-9+/]{43}=", component.sum)


@EVERY
def test_what_our_go_mod_changes_name_has_committed_hashes(component: Component) -> None:
    sums = extra_sums(component)
    for module, version in component.replaces.items():
        assert f"{module} {version} h1:" in sums
    if component.zero_version:
        assert f"k8s.io/api {component.zero_version} h1:" in sums


def test_kubernetes_reports_its_true_version() -> None:
    stamps = COMPONENTS["kubernetes-api"].stamps
    assert stamps["k8s.io/component-base/version.gitVersion"] == KUBERNETES_VERSION


def test_the_build_key_changes_with_compiler_version_and_input() -> None:
    etcd = COMPONENTS["etcd"]
    other = msgspec.structs.replace(etcd, version="v3.6.8")
    keys = {build_key(etcd, "go1.26.8"), build_key(etcd, "go1.27.0"), build_key(other, "go1.26.8")}
    assert len(keys) == 3


def test_the_api_profile_builds_no_node_programs() -> None:
    names = [component.name for component in components_of(checked(Spec(profile="api")))]
    assert names == ["etcd", "kubernetes-api", "kubectl"]


def test_a_full_cluster_builds_its_add_ons_and_no_peer() -> None:
    names = {component.name for component in components_of(checked(Spec(addons=ADDONS)))}
    assert {"coredns", "jobset", "kueue", "kube-router", "kwok", "kubernetes-node"} <= names
    assert not {"mpi-operator", "trainer"} & names


def test_a_trimmed_coredns_keeps_the_plugins_that_the_corefile_names() -> None:
    listed = overlay(COMPONENTS["coredns"])["core/plugin/zplugin.go"].decode()
    manifest = Path(addons.__file__).parent / "manifests" / "coredns.yaml"
    for plugin in ("errors", "health", "ready", "kubernetes", "cache", "template"):
        assert f"{plugin} " in manifest.read_text() or f"{plugin}\n" in manifest.read_text()
        assert f'plugin/{plugin}"' in listed


def test_an_overlay_changes_the_build_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    coredns = COMPONENTS["coredns"]
    with_overlay = build_key(coredns, "go1.26.8")
    monkeypatch.setattr("tools.cluster.build._OVERLAYS", tmp_path)
    assert build_key(coredns, "go1.26.8") != with_overlay
