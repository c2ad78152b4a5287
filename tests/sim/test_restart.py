"""A job that is run anew is made once, whatever becomes of the request (issue: nothing is lost)."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from mpi_trainer.api.kinds.annotations import RESTARTS
from mpi_trainer.sdk.backends.backend import Key
from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from tests.sim.faults import Fault, Kind
from tests.sim.node_logs import SPACE, Node

KEY = Key(SPACE, "pi")


@pytest.mark.parametrize("kind", ["drop", "lose", "answer"])
def test_the_old_job_is_replaced_when_the_answer_is_lost_or_late(kind: Kind) -> None:
    async def run() -> None:
        async with Node() as node:
            node.job("Succeeded")
            # The first is asked on trial, while the old job is there.
            node.faults += [
                Fault("late", method="POST", path="mpijobs", seconds=0.0),
                Fault(kind, method="POST", path="mpijobs", code=503),
            ]
            async with asyncio.timeout(30):
                made = await ClusterBackend(node.config, print).restart(KEY)
            assert made.annotations[RESTARTS] == "1"
            assert made.conditions == ()
            assert not any(fault.times for fault in node.faults)
            tried = [one for one in node.requests if one.method == "POST"]
            assert len(tried) == 3

    asyncio.run(run())


def test_a_job_that_never_goes_holds_no_call_of_a_server_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user can give it a finalizer."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def run() -> None:
        async with Node() as node:
            node.job("Succeeded", held="example.com/for-ever")
            backend = ClusterBackend(node.config, print, patience=0.2)
            async with asyncio.timeout(20):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await backend.restart(KEY)

    asyncio.run(run())
    assert not list(tmp_path.iterdir())
