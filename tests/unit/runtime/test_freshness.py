"""A key is not decided over a picture that lacks its own writes."""

from __future__ import annotations

from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta, Partial
from mpi_trainer.runtime.store import Store


class Thing(Partial, frozen=True, gc=False):
    metadata: Meta


JOB = Key("n", "job")


def meta(name: str, version: int) -> Meta:
    return Meta(name=name, namespace="n", uid=f"{name}-uid", resource_version=str(version))


class Scene:
    def __init__(self) -> None:
        self.time = 0.0
        self.pods: Store[Thing] = Store()
        self.pods.replace([Thing(metadata=meta("old", 5))], "10")
        self.writes: Freshness[Key, str] = Freshness({"pods": self.pods}, lambda: self.time)


def test_a_key_waits_until_the_watch_has_passed_its_write() -> None:
    scene = Scene()
    assert scene.writes.fresh(JOB)
    scene.writes.wrote(JOB, "pods", meta("new", 12))
    assert not scene.writes.fresh(JOB)
    scene.pods.put(Thing(metadata=meta("other", 11)))
    assert not scene.writes.fresh(JOB)
    scene.pods.put(Thing(metadata=meta("new", 12)))
    assert scene.writes.fresh(JOB)


def test_other_keys_do_not_wait() -> None:
    scene = Scene()
    scene.writes.wrote(JOB, "pods", meta("new", 12))
    assert scene.writes.fresh(Key("n", "other"))


def test_every_write_of_a_key_is_waited_for() -> None:
    scene = Scene()
    scene.writes.wrote(JOB, "pods", meta("a", 12))
    scene.writes.wrote(JOB, "pods", meta("b", 14))
    scene.pods.put(Thing(metadata=meta("a", 12)))
    assert not scene.writes.fresh(JOB)
    scene.pods.advance("14")
    assert scene.writes.fresh(JOB)


def test_an_event_that_was_quicker_than_the_answer_leaves_nothing_to_wait_for() -> None:
    scene = Scene()
    scene.pods.put(Thing(metadata=meta("new", 12)))
    scene.writes.wrote(JOB, "pods", meta("new", 12))
    assert scene.writes.fresh(JOB)


def test_an_object_that_came_and_went_unseen_is_not_waited_for() -> None:
    scene = Scene()
    scene.writes.wrote(JOB, "pods", meta("brief", 12))
    scene.pods.advance("15")
    assert scene.writes.fresh(JOB)


def test_a_deletion_is_waited_for_by_uid() -> None:
    scene = Scene()
    scene.writes.deleted(JOB, "pods", "old-uid")
    assert not scene.writes.fresh(JOB)
    scene.pods.remove(Thing(metadata=meta("old", 13)))
    assert scene.writes.fresh(JOB)
    scene.writes.deleted(JOB, "pods", "never-seen")
    assert scene.writes.fresh(JOB)


def test_the_wait_is_bounded_and_giving_up_is_counted() -> None:
    scene = Scene()
    scene.writes.wrote(JOB, "pods", meta("new", 12))
    scene.time = 9.9
    assert not scene.writes.fresh(JOB)
    scene.time = 10.0
    assert scene.writes.fresh(JOB)
    assert scene.writes.gave_up == 1
    assert scene.writes.fresh(JOB)
    assert scene.writes.gave_up == 1


def test_kinds_that_nobody_watches_and_forgotten_keys_do_not_count() -> None:
    scene = Scene()
    scene.writes.wrote(JOB, "secrets", meta("new", 12))
    assert scene.writes.fresh(JOB)
    scene.writes.wrote(JOB, "pods", meta("new", 12))
    scene.writes.forget(JOB)
    assert scene.writes.fresh(JOB)


def test_a_watch_that_is_only_behind_is_waited_for() -> None:
    """P-5: with hundreds of jobs starting, it may be later than ten seconds."""
    scene = Scene()
    scene.writes.wrote(JOB, "pods", meta("new", 1000))
    for second in range(1, 60):
        scene.time = float(second)
        scene.pods.advance(str(10 + second))
        assert not scene.writes.fresh(JOB)
    scene.time = 68.9
    assert not scene.writes.fresh(JOB)
    scene.time = 69.0
    assert scene.writes.fresh(JOB)
    assert scene.writes.gave_up == 1


def test_even_one_that_moves_is_not_waited_for_for_ever() -> None:
    scene = Scene()
    scene.writes.wrote(JOB, "pods", meta("new", 10_000))
    for second in range(1, 120):
        scene.time = float(second)
        scene.pods.advance(str(10 + second))
        assert not scene.writes.fresh(JOB)
    scene.time = 120.0
    assert scene.writes.fresh(JOB)
