"""The reflector's lists: as many pages as objects need, whatever the server does between them."""

from __future__ import annotations

import pytest

from mpi_trainer.runtime import reflector
from tests.sim.faults import Fault
from tests.sim.reflected import Scene, Thing, play


def test_pages_that_come_too_slowly_are_followed_by_a_whole_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reflector, "FIRST_PAGE", 1)
    monkeypatch.setattr(reflector, "PAGE", 1)
    limits: list[str | None] = []

    async def script(scene: Scene) -> None:
        lists = [one for one in scene.server.requests if "watch" not in one.query]
        limits.extend(one.query.get("limit") for one in lists)
        assert scene.words == ["+a", "+b"]

    play(script, Fault("answer", watch=False, code=410, reason="Expired"))
    assert limits == ["1", None]
    limits.clear()
    play(script)
    assert limits == ["1", "1"]


def test_pages_are_as_large_as_objects_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """S-15: ten thousand jobs of a megabyte each must not be in memory at once."""
    monkeypatch.setattr(reflector, "FIRST_PAGE", 2)
    monkeypatch.setattr(reflector, "PAGE_BYTES", 4000)
    limits: list[str | None] = []

    async def script(scene: Scene) -> None:
        for number in range(40):
            scene.put(f"large-{number}", text="x" * 2000)
        scene.server.requests.clear()
        await scene.reflector.refresh()
        lists = [one for one in scene.server.requests if "watch" not in one.query]
        limits.extend(one.query.get("limit") for one in lists)
        await scene.agrees()

    play(script)
    sizes = [int(one or 0) for one in limits]
    assert sizes[0] == 2
    assert sizes[1] > 2, "the first two are small"
    assert set(sizes[2:]) == {1}, "of the others only one fits"


def test_the_next_page_is_on_its_way_while_one_is_worked_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """P-3: a start takes as long as the server lists, not as long as both do in turn."""
    monkeypatch.setattr(reflector, "FIRST_PAGE", 20)
    monkeypatch.setattr(reflector, "SLICE", 1)
    asked: list[int] = []

    async def script(scene: Scene) -> None:
        for number in range(40):
            scene.put(f"one-{number:02}")

        taken_in = scene.reflector._taken_in

        def noted(thing: Thing) -> Thing:
            asked.append(len([one for one in scene.server.requests if "watch" not in one.query]))
            return taken_in(thing)

        monkeypatch.setattr(scene.reflector, "_taken_in", noted)
        scene.server.requests.clear()
        await scene.reflector.refresh()
        await scene.agrees()

    play(script)
    assert asked[19] == 2, "of the first page's twenty the last came after the next request"
