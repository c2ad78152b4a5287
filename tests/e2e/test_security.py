"""OpenShift's rules: settings come from the namespace's range, others are refused."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.cluster import Kubectl
from tests.e2e.manifests import Object, pod


def test_a_pod_without_settings_gets_those_of_its_namespace(
    namespace: Kubectl, image: Callable[[str], str]
) -> None:
    """AC-20: a random user id in group 0, no capability, and a home it can write to."""
    check = "id -u; id -g; touch $HOME/here && echo home; grep CapEff /proc/self/status"
    namespace.apply(pod("plain", image("mpi-base"), 1, ["sh", "-c", check], restartPolicy="Never"))
    namespace.wait("--for=jsonpath={.status.phase}=Succeeded", "pod/plain")
    lines = namespace("logs", "plain").split()
    assert lines == ["1000740000", "0", "home", "CapEff:", "0000000000000000"]
    spec = namespace.get("pod", "plain")["spec"]
    assert spec["securityContext"]["fsGroup"] == 1000740000
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_init_containers_get_them_too(namespace: Kubectl, image: Callable[[str], str]) -> None:
    base = image("mpi-base")
    first = {"name": "first", "image": base, "imagePullPolicy": "Never", "args": ["id", "-u"]}
    namespace.apply(pod("two", base, 1, ["true"], restartPolicy="Never", initContainers=[first]))
    namespace.wait("--for=jsonpath={.status.phase}=Succeeded", "pod/two")
    assert namespace("logs", "two", "-c", "first").strip() == "1000740000"


def test_a_user_id_outside_the_range_is_refused(namespace: Kubectl) -> None:
    for settings in ({"runAsUser": 1000}, {"runAsUser": 1000750000}):
        refused = pod("root", "x", 1, ["true"], securityContext=settings)
        assert "must be in the ranges: [1000740000, 1000749999]" in _refusal(namespace, refused)
    group = pod("group", "x", 1, ["true"], securityContext={"fsGroup": 5})
    assert "fsGroup" in _refusal(namespace, group)


def test_added_capabilities_are_refused(namespace: Kubectl) -> None:
    settings = {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}}
    assert "SYS_ADMIN" in _refusal(namespace, pod("cap", "x", 1, ["true"], container=settings))


def _refusal(kubectl: Kubectl, refused: Object) -> str:
    answer = kubectl.attempt("create", "-f", "-", data=json.dumps(refused))
    assert answer.returncode != 0
    return answer.stderr
