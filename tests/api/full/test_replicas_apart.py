"""The real scheduler puts replicas of ours on different nodes, by KWOK's nodes (U-5)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests import spreading
from tests.cluster import Kubectl, eventually, shared_cluster
from tools.cluster.spec import Spec

ROUNDS = 3


@pytest.fixture(scope="module")
def fake_nodes() -> Iterator[Spec]:
    yield from shared_cluster(Spec(name="test-apart", profile="kwok", fake_nodes=3))


@pytest.mark.parametrize("zones", [0, 1, 2])
def test_replicas_are_on_different_nodes(fake_nodes: Spec, zones: int) -> None:
    """Where no node has a zone, all have the same one, or two have one each and one has none."""
    kubectl = Kubectl(fake_nodes, f"apart-{secrets.token_hex(4)}")
    kubectl("create", "namespace", kubectl.namespace)
    eventually("account", lambda: not kubectl.attempt("get", "sa", "default").returncode)
    names = kubectl("get", "nodes", "-o", "name").split()
    assert len(names) == 3
    labels = {0: [], 1: ["a"] * 3, 2: ["a", "b"]}[zones]
    for node, zone in zip(names, labels, strict=False):
        kubectl("label", node, f"{spreading.ZONE}={zone}")
    try:
        spreading.apart(kubectl, spreading.deployments(kubectl, "x"), ROUNDS)
    finally:
        for node in names:
            kubectl("label", node, f"{spreading.ZONE}-")
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
