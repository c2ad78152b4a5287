"""What we change in other projects' published YAML, and what we leave alone."""

from __future__ import annotations

import yaml

from tools.cluster.published import (
    asked_at_once,
    images_of,
    with_our_job_kinds,
    without_registry,
)

DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "manager"},
    "spec": {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "m", "image": "a/b:1", "args": ["-x"]}]}},
    },
}
CONFIG = {
    "kind": "ConfigMap",
    "metadata": {"name": "kueue-manager-config"},
    "data": {
        "controller_manager_config.yaml": "leaderElection: {leaderElect: true}\n"
        "integrations: {frameworks: [pod, deployment]}\n"
    },
}


def test_deployments_use_the_image_that_is_on_the_node() -> None:
    (container,) = without_registry(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "m", "image": "a/b:1", "args": ["-x"], "imagePullPolicy": "Never"}


def test_other_kinds_are_left_as_they_are() -> None:
    assert without_registry(CONFIG) is CONFIG
    assert with_our_job_kinds(DEPLOYMENT) is DEPLOYMENT


def test_kueue_manages_our_job_kinds_and_keeps_its_other_settings() -> None:
    changed = with_our_job_kinds(CONFIG)
    config = yaml.safe_load(changed["data"]["controller_manager_config.yaml"])
    assert "kubeflow.org/mpijob" in config["integrations"]["frameworks"]
    assert "deployment" not in config["integrations"]["frameworks"]
    assert config["leaderElection"] == {"leaderElect": True}


def test_images_are_read_from_deployments_only() -> None:
    assert images_of([DEPLOYMENT, CONFIG]) == ["a/b:1"]


def test_metrics_server_is_asked_at_once_whether_it_is_ready() -> None:
    probe = {"initialDelaySeconds": 20, "httpGet": {"path": "/readyz"}}
    each = {"name": "m", "args": ["--a"], "readinessProbe": probe}
    deployment = {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [each]}}}}
    (made,) = asked_at_once(deployment)["spec"]["template"]["spec"]["containers"]
    assert made["readinessProbe"]["initialDelaySeconds"] == 1
    assert (made["args"], made["readinessProbe"]["httpGet"]) == (["--a"], probe["httpGet"])
    assert asked_at_once(CONFIG) is CONFIG
