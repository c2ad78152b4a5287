"""What holds for every call and stream: one person cannot take the place of all others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from mpi_trainer.sdk.backends.cluster.backend import ClusterBackend
from mpi_trainer.server import calls
from mpi_trainer.server.callers import Caller, Callers, Login
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.endpoint import Answer, Call, Endpoint
from mpi_trainer.server.live.hub import Hub, LiveSettings
from mpi_trainer.server.problems import Refused


class Cluster:
    """Knows whose a token is: `anna-1` is one of Anna's."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def user(self) -> str:
        return self.token.partition("-")[0]


class Asked:
    """By whoever holds the token."""

    namespace = job = ""

    def __init__(self, token: str) -> None:
        self.backend = cast(ClusterBackend, Cluster(token))
        self.token = token

    def caller(self, callers: Callers) -> Caller:
        return Caller(self.token, self.backend, login=Login(self.backend))

    async def call(self, endpoint: Endpoint, caller: Caller) -> Call:
        return Call(caller.backend)

    async def live_call(self, stream: Any, caller: Caller, hub: Hub) -> Any:
        raise NotImplementedError


async def waiting(call: Call) -> Answer:
    await asyncio.Event().wait()
    return Answer()


SLOW = Endpoint("GET", "/slow", "slow", "", waiting)
Ask = Callable[[str], Awaitable[object]]


async def refused(ask: Ask, tokens: list[str]) -> list[str]:
    """The tokens that are refused when all ask at once and nobody leaves."""
    tasks = {token: asyncio.ensure_future(ask(token)) for token in tokens}
    await asyncio.sleep(0.05)
    wrong = [token for token, task in tasks.items() if task.done()]
    for task in tasks.values():
        task.cancel()
    for one in await asyncio.gather(*tasks.values(), return_exceptions=True):
        assert not isinstance(one, Refused) or one.problem.status == 429
    return wrong


@pytest.mark.parametrize("streams", [False, True])
def test_one_person_has_a_part_of_all_calls_and_streams_with_any_number_of_tokens(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "EACH", 1)

    async def run() -> None:
        nobody = cast(Callers, None)
        known = Calls(nobody, at_once=12, live=LiveSettings(streams=12, each=1))

        async def stream(token: str) -> None:
            async with known.streaming(Asked(token)):
                await asyncio.Event().wait()

        def ask(token: str) -> Awaitable[object]:
            return stream(token) if streams else known.answer(SLOW, Asked(token))

        tokens = [f"anna-{number}" for number in range(8)] + ["ben-1", "ben-2"]
        assert await refused(ask, tokens) == [f"anna-{number}" for number in range(3, 8)]
        assert await refused(ask, ["anna-1"]) == []

    asyncio.run(run())
