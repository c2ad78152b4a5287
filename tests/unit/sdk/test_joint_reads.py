"""One read for all who ask before it begins, and never one that began before the question."""

from __future__ import annotations

import asyncio

from mpi_trainer.sdk.backends.cluster.joint_reads import JointReads


class Source:
    """Answers with the number of the read, when it is let go on."""

    def __init__(self) -> None:
        self.begun = 0
        self.open = asyncio.Event()

    async def read(self) -> int:
        self.begun += 1
        number = self.begun
        await self.open.wait()
        return number


def test_a_hundred_who_ask_at_once_cost_two_reads_and_get_none_from_before_their_question() -> None:
    async def body() -> None:
        source, reads = Source(), JointReads[int]()
        first = asyncio.ensure_future(reads.read("a", source.read))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert source.begun == 1
        later = [asyncio.ensure_future(reads.read("a", source.read)) for _ in range(99)]
        other = asyncio.ensure_future(reads.read("b", source.read))
        await asyncio.sleep(0.01)
        assert source.begun == 2, "the one of another name, and no second one meanwhile"
        source.open.set()
        assert (await first, await other) == (1, 2)
        assert set(await asyncio.gather(*later)) == {3}

    asyncio.run(body())


def test_who_leaves_takes_nobodys_answer_along() -> None:
    async def body() -> None:
        source, reads = Source(), JointReads[int]()
        leaving, staying = (
            asyncio.ensure_future(reads.read("a", source.read)) for _ in range(2)
        )  # fmt: skip
        await asyncio.sleep(0.01)
        leaving.cancel()
        source.open.set()
        assert await staying == 1

    asyncio.run(body())


def test_a_read_that_fails_is_told_to_all_who_wait_and_is_not_kept() -> None:
    async def body() -> None:
        reads = JointReads[int]()

        async def failing() -> int:
            raise OSError

        async def sound() -> int:
            return 5

        asked = (reads.read("a", failing) for _ in range(3))
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, OSError) for one in found) and len(found) == 3
        assert await reads.read("a", sound) == 5

    asyncio.run(body())
