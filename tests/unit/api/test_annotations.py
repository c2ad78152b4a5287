"""What our annotations may say (CTL-4 areas 4 and 10)."""

from __future__ import annotations

import pytest

from mpi_trainer.api.kinds.annotations import BOUNDS, NETWORK_POLICY, seconds
from mpi_trainer.layout.agent.choice import AgentSettings, settings
from tests.unit.api.building import POD, errors, warnings

META = ("metadata", "annotations")
DOMAIN = "mpi-trainer.opendatahub.io"


def test_every_bound_of_the_agent_has_its_annotation() -> None:
    assert AgentSettings.__struct_fields__ == BOUNDS
    given = {f"{DOMAIN}/{name}-seconds": str(n) for n, name in enumerate(BOUNDS, 1)}
    assert settings(given) == AgentSettings(1, 2, 3, 4, 5, 6)
    assert errors((META, given)) == []


@pytest.mark.parametrize("text", ["", "-1", "1.5", "2m", "٣", "9" * 40, "0x10"])
def test_what_is_no_number_of_seconds_is_refused_and_never_used(text: str) -> None:
    given = {f"{DOMAIN}/wait-seconds": text}
    assert seconds(text) is None
    assert settings(given) == AgentSettings()
    assert "must be whole seconds" in errors((META, given))[0]


def test_an_unknown_name_is_refused_with_the_nearest_or_with_all() -> None:
    assert errors((META, {f"{DOMAIN}/shs": "managed"})) == [
        f"metadata.annotations[{DOMAIN}/shs]: Unknown field: {DOMAIN} has no such annotation;"
        f" did you mean `{DOMAIN}/ssh`?"
    ]
    assert (
        "known are agent, ssh, network-policy, log-tail, wait"
        in errors((META, {f"{DOMAIN}/q": ""}))[0]
    )


def test_annotations_of_others_are_their_own_business() -> None:
    assert errors((META, {"network-policy": "x", f"sub.{DOMAIN}/agnet": "x"})) == []


def test_a_network_that_lies_outside_policies_is_a_warning() -> None:
    """AC-13."""
    closed = (META, {NETWORK_POLICY: "restricted"})
    second = ((*POD[:-1], "metadata"), {"annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"}})
    said = warnings(closed, second)
    assert len(said) == 1
    assert "a second network lies outside NetworkPolicy" in said[0]
    assert warnings(second) == []
    assert "Forbidden: true" in errors(closed, ((*POD, "hostNetwork"), True))[0]
