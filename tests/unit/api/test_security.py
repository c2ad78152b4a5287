"""Security contexts that can never start a pod are refused; what a cluster may allow is not."""

from __future__ import annotations

from typing import Any

import pytest

from mpi_trainer.api.errors import Path
from tests.unit.api.building import CONTAINER, POD, errors, warnings

OWN: Path = (*CONTAINER, "securityContext")
PODS: Path = (*POD, "securityContext")


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        (OWN, {"runAsUser": -1}, "securityContext.runAsUser: Invalid value: -1"),
        (OWN, {"runAsGroup": 2**31}, "runAsGroup: Invalid value: 2147483648: must be between 0"),
        (PODS, {"fsGroup": -5}, "securityContext.fsGroup: Invalid value: -5"),
        (PODS, {"supplementalGroups": [0, -1]}, "supplementalGroups[1]: Invalid value: -1"),
        (
            OWN,
            {"privileged": True, "allowPrivilegeEscalation": False},
            "remove `privileged: true`",
        ),
        (
            OWN,
            {"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": False},
            "allowPrivilegeEscalation: Invalid value: false: a container with CAP_SYS_ADMIN",
        ),
        (OWN, {"runAsNonRoot": True, "runAsUser": 0}, "user 0 is root, and runAsNonRoot is set"),
        (OWN, {"procMount": "Open"}, "procMount: Unsupported value"),
        (OWN, {"seccompProfile": {"type": "runtimeDefault"}}, "did you mean `RuntimeDefault`?"),
        (OWN, {"seccompProfile": {}}, "seccompProfile.type: Required value"),
        (PODS, {"seccompProfile": {"type": "Localhost"}}, "localhostProfile: Required value"),
        (
            PODS,
            {"appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"}},
            "localhostProfile: Forbidden",
        ),
        (
            PODS,
            {"seccompProfile": {"type": "Localhost", "localhostProfile": "../x"}},
            "must be a relative path without `..`",
        ),
        (PODS, {"sysctls": [{"name": "Net Core", "value": "1"}]}, "sysctls[0].name: Invalid value"),
        (PODS, {"fsGroupChangePolicy": "Sometimes"}, "fsGroupChangePolicy: Unsupported value"),
        (PODS, {"supplementalGroupsPolicy": "x"}, "supplementalGroupsPolicy: Unsupported value"),
    ],
)
def test_contradiction_is_refused_with_its_field(path: Path, value: Any, part: str) -> None:
    """CTL-4 (9)."""
    found = errors((path, value))
    assert len(found) == 1, found
    assert part in found[0]


def test_root_of_the_pod_is_seen_in_a_container_that_must_not_be_root() -> None:
    found = errors((PODS, {"runAsUser": 0}), (OWN, {"runAsNonRoot": True}))
    assert [error.split(":")[0].rsplit(".", 3)[1:] for error in found] == [
        ["containers[0]", "securityContext", "runAsUser"]
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"hostUsers": False, "hostNetwork": True},
        {"hostUsers": False, "hostPID": True},
        {"hostUsers": False, "hostIPC": True},
        {"hostPID": True, "shareProcessNamespace": True},
    ],
)
def test_shared_namespaces_that_exclude_each_other_are_refused(changes: dict[str, bool]) -> None:
    assert len(errors(*(((*POD, field), on) for field, on in changes.items()))) == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (OWN, {"privileged": True}),
        (OWN, {"runAsUser": 0}),
        (OWN, {"runAsNonRoot": True, "runAsUser": 1000740000}),
        (OWN, {"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}}),
        (PODS, {"fsGroup": 0, "sysctls": [{"name": "net/ipv4/ip_local_port_range", "value": "1"}]}),
        (PODS, {"seccompProfile": {"type": "Localhost", "localhostProfile": "mpi/ranks.json"}}),
    ],
)
def test_what_a_cluster_may_allow_is_not_refused_here(path: Path, value: Any) -> None:
    assert errors((path, value)) == []


@pytest.mark.parametrize("path", [PODS, OWN])
def test_options_for_windows_are_warned_about_only(path: Path) -> None:
    """W-3: the API server takes them, and a Linux node ignores them."""
    (found,) = warnings((path, {"windowsOptions": {"runAsUserName": "x"}}))
    assert "windowsOptions" in found
    assert "MPI jobs run on Linux nodes" in found
