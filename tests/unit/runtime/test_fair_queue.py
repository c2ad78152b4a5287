"""Groups take turns: nobody starves, nobody is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.runtime.fair_queue import FairQueue

ARRIVALS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 30)), max_size=60)


@given(ARRIVALS)
def test_every_key_comes_once_and_groups_keep_their_order(arrivals: list[tuple[str, int]]) -> None:
    turns: FairQueue[tuple[str, int], None] = FairQueue()
    for key in arrivals:
        turns.put(key[0], key, None)
    wanted = list(dict.fromkeys(arrivals))
    assert len(turns) == len(wanted)
    taken = [turns.take()[0] for _ in wanted]
    assert len(turns) == 0
    for group in "abcd":
        own = [key for key in wanted if key[0] == group]
        assert [key for key in taken if key[0] == group] == own


@given(ARRIVALS, st.integers(0, 40), ARRIVALS)
def test_a_groups_first_waits_for_one_of_each_other_group_at_most(
    before: list[tuple[str, int]], served: int, flood: list[tuple[str, int]]
) -> None:
    """S-15: however many wait before it, and however many come after it."""
    turns: FairQueue[tuple[str, int], None] = FairQueue()
    for key in before:
        turns.put(key[0], key, None)
    for _ in range(min(served, len(turns))):
        turns.take()
    turns.put("z", ("z", 0), None)
    coming = iter(flood)
    for turn in range(6):
        key, _ = turns.take()
        if key == ("z", 0):
            assert turn <= 4
            return
        for late in (next(coming, None), next(coming, None)):
            if late is not None:
                turns.put(late[0], late, None)
    raise AssertionError("it has not had its turn")


@given(ARRIVALS)
def test_what_is_removed_does_not_come_and_leaves_nothing(
    arrivals: list[tuple[str, int]],
) -> None:
    turns: FairQueue[tuple[str, int], int] = FairQueue()
    for key in arrivals:
        turns.put(key[0], key, key[1])
    for key in set(arrivals):
        assert turns.holds(key[0], key)
        assert turns.remove(key[0], key) == key[1]
        assert not turns.holds(key[0], key)
    assert len(turns) == 0
    assert not turns._groups
