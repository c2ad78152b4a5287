"""What a store makes of lists and events, in whatever order they come."""

from __future__ import annotations

from mpi_trainer.runtime.partial import Key, Meta, Partial, version_number
from mpi_trainer.runtime.store import Change, Store, by_label


class Thing(Partial, frozen=True, gc=False):
    metadata: Meta
    phase: str = ""


def thing(name: str, version: int, phase: str = "", *, uid: str = "", job: str = "") -> Thing:
    meta = Meta(
        name=name,
        namespace="n",
        uid=uid or f"{name}-uid",
        resource_version=str(version),
        labels={"job": job} if job else {},
    )
    return Thing(metadata=meta, phase=phase)


def filled(*things: Thing, version: int = 10) -> Store[Thing]:
    store: Store[Thing] = Store({"job": by_label("job")})
    store.replace(things, str(version))
    return store


def names(values: tuple[Thing, ...]) -> list[str]:
    return [value.metadata.name for value in values]


def test_indexes_follow_changes() -> None:
    store = filled(thing("b", 1, job="x"), thing("a", 2, job="x"), thing("c", 3, job="y"))
    assert names(store.by("job", "n/x")) == ["a", "b"]
    store.put(thing("b", 11, job="y"))
    assert names(store.by("job", "n/x")) == ["a"]
    assert names(store.by("job", "n/y")) == ["b", "c"]
    store.remove(thing("a", 12, job="x"))
    assert store.by("job", "n/x") == ()
    assert "n/x" not in store._indexes["job"]


def test_an_index_holds_the_value_that_is_current() -> None:
    store = filled(thing("a", 1, job="x"))
    store.put(thing("a", 11, "Running", job="x"))
    assert [value.phase for value in store.by("job", "n/x")] == ["Running"]


def test_an_older_or_equal_version_changes_nothing() -> None:
    store = filled(thing("a", 9, "new"))
    assert store.put(thing("a", 8, "old")) == ("known", ())
    assert store.put(thing("a", 9, "same")) == ("known", ())
    kept = store.get(Key("n", "a"))
    assert kept is not None
    assert kept.phase == "new"


def test_versions_are_compared_as_numbers() -> None:
    store = filled(thing("a", 9))
    outcome, _ = store.put(thing("a", 100, "newer"))
    assert outcome == "changed"
    assert version_number("9") < version_number("10")
    assert version_number("odd") == -1


def test_an_object_of_the_same_name_is_another_one() -> None:
    first = thing("a", 9, uid="one")
    second = thing("a", 12, uid="two")
    store = filled(first)
    _, changes = store.put(second)
    assert changes == (Change(first, None), Change(None, second))
    assert store.holds("two")
    assert not store.holds("one")
    assert store.remove(thing("a", 11, uid="one")) == ()
    assert store.get(Key("n", "a")) is second


def test_a_late_deletion_does_not_remove_what_came_back() -> None:
    store = filled(thing("a", 9))
    store.put(thing("a", 12))
    assert store.remove(thing("a", 11)) == ()
    assert store.remove(thing("a", 13)) != ()


def test_a_late_event_of_an_unknown_object_is_doubtful() -> None:
    """It may have been deleted since: taking it would bring it back to life."""
    store = filled(thing("a", 9))
    store.remove(thing("a", 12))
    assert store.put(thing("a", 11)) == ("doubtful", ())
    assert store.get(Key("n", "a")) is None


def test_a_late_event_of_a_known_object_is_taken_if_it_is_newer_than_what_is_known() -> None:
    store = filled(thing("a", 8), thing("b", 9))
    store.put(thing("b", 13))
    outcome, _ = store.put(thing("a", 12, "late"))
    assert outcome == "changed"


def test_a_list_tells_what_was_missed_and_nothing_else() -> None:
    kept, changed, lost = thing("kept", 5), thing("changed", 6), thing("lost", 7)
    store = filled(kept, changed, lost)
    newer, fresh = thing("changed", 20), thing("fresh", 21)
    changes = store.replace([thing("kept", 5), newer, fresh], "30")
    assert changes == (Change(lost, None), Change(changed, newer), Change(None, fresh))
    assert store.get(Key("n", "kept")) is kept
    assert store.version() == 30


def test_a_list_is_the_truth_even_if_its_versions_went_back() -> None:
    """As after a restore of etcd."""
    store = filled(thing("a", 900, "future"), version=1000)
    store.replace([thing("a", 400, "restored")], "500")
    restored = store.get(Key("n", "a"))
    assert restored is not None
    assert restored.phase == "restored"
    assert store.version() == 500


def test_a_list_sees_that_an_object_was_replaced_by_another() -> None:
    first, second = thing("a", 5, uid="one"), thing("a", 6, uid="two")
    assert filled(first).replace([second], "30") == (Change(first, None), Change(None, second))


def test_what_could_not_be_read_stays_as_it_was() -> None:
    store = filled(thing("a", 5), thing("b", 6))
    changes = store.replace([], "30", kept=[Key("n", "a")])
    assert [change.new for change in changes] == [None]
    assert [value.metadata.name for value in store] == ["a"]


def test_reflectors_of_single_namespaces_share_a_store() -> None:
    store: Store[Thing] = Store()
    store.replace([thing("a", 5)], "10", "n")
    other = Thing(metadata=Meta(name="a", namespace="m", uid="m-a", resource_version="6"))
    store.replace([other], "20", "m")
    assert len(store) == 2
    assert (store.version("n"), store.version("m")) == (10, 20)
    assert len(store.replace([], "30", "m")) == 1
    assert [value.metadata.namespace for value in store] == ["n"]


def test_bookmarks_only_move_forward() -> None:
    store = filled(thing("a", 5))
    store.advance("50")
    store.advance("40")
    assert store.version() == 50


def test_an_object_that_cannot_be_read_can_still_be_removed() -> None:
    store = filled(thing("a", 9))
    assert store.discard(Key("n", "a"), Meta(uid="other", resource_version="12")) == ()
    assert len(store.discard(Key("n", "a"), Meta(uid="a-uid", resource_version="13"))) == 1
    assert store.version() == 13
