"""Replicas of ours are on different real nodes, with and without zones (U-5)."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from tests import spreading
from tests.cluster import Kubectl, restricted
from tools.cluster.spec import Spec

ROUNDS = 5


@pytest.mark.parametrize("zones", [(), ("a", "a", "a"), ("a", "b")])
def test_replicas_are_on_different_nodes(
    cluster: Spec, image: Callable[[str], str], zones: tuple[str, ...]
) -> None:
    kubectl = Kubectl(cluster, f"apart-{secrets.token_hex(4)}")
    kubectl.apply(restricted(kubectl.namespace))
    nodes = kubectl("get", "nodes", "-o", "name").split()
    for node, zone in zip(nodes, zones, strict=False):
        kubectl("label", node, f"{spreading.ZONE}={zone}")
    try:
        made = spreading.deployments(kubectl, image("mpi-openmpi"))
        spreading.apart(kubectl, made, ROUNDS)
    finally:
        for node in nodes:
            kubectl("label", node, f"{spreading.ZONE}-")
        kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
