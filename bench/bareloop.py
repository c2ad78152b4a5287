"""A bare asyncio loop beside a measurement: how late the machine alone makes a loop.

Samples as the controller's own metric does, until its input ends; then it prints the worst lag.
"""

from __future__ import annotations

import asyncio
import sys

from mpi_trainer.runtime.loop_lag import PERIOD


async def worst_until_the_input_ends() -> float:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    worst = 0.0
    while not ended.is_set():
        asked = loop.time()
        await asyncio.sleep(PERIOD)
        worst = max(worst, loop.time() - asked - PERIOD)
    return worst


if __name__ == "__main__":
    print(asyncio.run(worst_until_the_input_ends()))
