"""Which jobs filters take, and what facets count."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.sdk.backends.backend import JobSummary, Key
from mpi_trainer.server.filters import MOST_VALUES, Filters, counted
from mpi_trainer.server.paging import ShortListQuery
from mpi_trainer.server.parameters import query
from mpi_trainer.server.values import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FACETS = ("state", "kind", "queue", "runtime", "owner", "namespace")
WORDS = ("", "a", "b")


def job(**fields: Any) -> JobSummary:
    made = JobSummary(Key("team", "one"), "Running", NOW, queue="fast", owner="ann")
    return msgspec.structs.replace(made, **fields)


states = st.sampled_from(get_args(State))
words = st.sampled_from(WORDS)
jobs = st.lists(
    st.builds(job, state=states, kind=words, queue=words, runtime=words, owner=words), max_size=20
)
some = st.lists(words.filter(bool), max_size=2).map(tuple)
asked = st.builds(
    Filters, state=st.lists(states, max_size=2).map(tuple), kind=some, queue=some, owner=some
)


@given(jobs=jobs, asked=asked)
def test_a_facet_counts_what_the_other_filters_take(jobs: list[JobSummary], asked: Filters) -> None:
    """Each is compared with a list that is filtered without it."""
    for name in ("state", "kind", "queue", "owner"):
        without, _ = counted(jobs, msgspec.structs.replace(asked, **{name: ()}))
        expected = Counter(str(getattr(one, name)) for one in without)
        expected.pop("", None)
        _, facets = counted(jobs, asked)
        assert getattr(facets, name) == expected
    taken, _ = counted(jobs, asked)
    for name in ("state", "kind", "queue", "owner"):
        wanted = getattr(asked, name)
        assert all(getattr(one, name) in wanted for one in taken) or not wanted


def test_values_of_a_facet_are_the_most_frequent_ones() -> None:
    many = [job(owner=f"user-{n}") for n in range(3 * MOST_VALUES)]
    _, facets = counted([*many, job(owner="ann"), job(owner="ann")], Filters())
    assert len(facets.owner) <= MOST_VALUES + 1 and facets.owner["ann"] == 2
    assert facets.namespace == {"team": 3 * MOST_VALUES + 2}
    assert [*msgspec.structs.asdict(facets)] == [*FACETS]


def test_the_namespace_of_a_short_path_filters_nothing() -> None:
    wanted = ShortListQuery(namespace="team")
    assert counted([job()], wanted)[0] == [job()]


def test_a_value_may_have_commas_itself() -> None:
    jane = job(owner="CN=Jane,OU=ml,O=acme")
    for text in ("CN=Jane,OU=ml,O=acme", "bob,CN=Jane,OU=ml,O=acme,ann"):
        wanted = query(Filters, [("owner", text)])
        assert counted([jane, job(owner="jim")], wanted)[0] == [jane]
    assert counted([jane], query(Filters, [("owner", "CN=Jane,O=acme")]))[0] == []
