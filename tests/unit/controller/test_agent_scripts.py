"""The agent's scripts of a namespace, on a clock that jumps."""

from __future__ import annotations

from typing import cast

from mpi_trainer.api.kinds.annotations import AGENT_SCRIPTS
from mpi_trainer.controller.agent_scripts import AgentScripts, ScriptsUser
from mpi_trainer.kube.client import Client
from mpi_trainer.render import agent_scripts
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.workqueue import WorkQueue
from tests.unit.runtime.fake_api_server import FakeApiServer
from tests.unit.runtime.fake_time import run_in_fake_time

OLD = {AGENT_SCRIPTS: "0123456789ab"}
PI = ScriptsUser("MPIJob", Key("team", "pi"))
PLACE = Key("team", "")


class Lab:
    def __init__(self) -> None:
        self.server, self.now = FakeApiServer(), 1e6
        queue: WorkQueue[Key] = WorkQueue()
        self.scripts = AgentScripts(cast(Client, self.server), queue, lambda: self.now)

    def there(self) -> list[str]:
        return [name for _, _, name in self.server.objects.objects]


def test_a_job_that_grows_after_an_upgrade_keeps_both_versions() -> None:
    """C-7, C-14: its launcher reads the scripts that it began with, its new workers this version's.
    Those were removed while the workers waited for them, and nothing made them again."""
    run_in_fake_time(_grown_after_an_upgrade())


async def _grown_after_an_upgrade() -> None:
    lab = Lab()
    lab.scripts.note_use(PI, OLD, waits=False)
    await lab.scripts.provide(PI)  # before its new workers
    lab.scripts.note_use(PI, OLD, waits=True)  # one of them is pending
    for _ in range(3):
        lab.now += 3600
        await lab.scripts.reconcile(PLACE)
        assert lab.there() == [agent_scripts.name()]
    assert not [sent for sent in lab.server.sent if sent.method == "DELETE"]
    lab.scripts.note_end(PI, OLD)
    lab.now += 3600
    await lab.scripts.reconcile(PLACE)
    assert lab.there() == []


def test_nothing_is_kept_of_a_namespace_without_jobs() -> None:
    """Namespaces come and go for as long as a controller runs."""
    run_in_fake_time(_come_and_gone())


async def _come_and_gone() -> None:
    lab = Lab()
    await lab.scripts.provide(PI)
    lab.scripts.note_end(PI, {AGENT_SCRIPTS: agent_scripts.version()})
    lab.now += 3600
    await lab.scripts.reconcile(PLACE)
    lab.scripts.note_end(PI)
    assert len(lab.scripts) == 0
