"""The sentences about pods that do not run, whoever wrote what they are made of."""

from __future__ import annotations

from mpi_trainer.diagnose.pod_waiting import WaitingPod, cause


def test_numbers_that_no_cluster_has_are_quoted_and_not_counted() -> None:
    """Python refuses to read a number of more than 4,300 digits, which would end the pass."""
    endless = "9" * 5000
    for message in (f"0/3 nodes are available: {endless} Insufficient cpu", f"0/{endless} nodes"):
        told = cause(WaitingPod(scheduled=False, message=message))
        assert told.startswith("have no node: ")
        assert len(told) < 400


def test_shares_of_nodes_are_counted() -> None:
    message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    told = cause(WaitingPod(scheduled=False, message=message))
    assert told == "have no node: of 3 nodes 2 had untolerated taint(s), 1 have too little cpu left"
