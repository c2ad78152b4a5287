"""Objects that the e2e tests share, as plain values."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def pod(name: str, image: str, node: int, command: list[str], **spec: Any) -> Object:
    """A pod on one node, without any security setting: the namespace's rules fill them in."""
    container: Object = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "args": command,
    }
    container |= spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name, **spec.pop("labels", {})}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": f"node{node}"},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def headless(name: str, selector: dict[str, str]) -> Object:
    """A Service that gives pods their DNS names."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }


def job(name: str, image: str, command: list[str], cpu: str = "100m") -> Object:
    """A Job with one pod."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "args": command,
        "resources": {"requests": {"cpu": cpu}},
    }
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }
