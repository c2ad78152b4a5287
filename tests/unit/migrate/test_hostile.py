"""MIG-1, MIG-2, API-4: whatever stands in a field, a converter answers and does not fail."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpi_trainer.migrate.sources import converted
from tests.unit.migrate.cases import BASE
from tests.unit.migrate.test_clouds import AZURE, REQUEST
from tests.unit.migrate.test_legacy import ALPHA, V1

SOURCES: dict[str, dict[str, Any]] = {
    "v2beta1": BASE, "v1": V1, "v1alpha1": ALPHA, "sagemaker": REQUEST, "azureml": AZURE
}  # fmt: skip
WORDS = st.sampled_from(
    ["", "name", "mpi", "true", "0", "-1", "x" * 70, "a b", "\x00", "${{a}}", "é"]
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 2**33), st.floats(), WORDS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in it that can be given another value."""
    if isinstance(value, dict):
        inner = [place for key, item in value.items() for place in places(item, (*path, key))]
    elif isinstance(value, list):
        inner = [place for n, item in enumerate(value) for place in places(item, (*path, n))]
    else:
        inner = []
    return [path, *inner] if path else inner


def changed(source: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    job = copy.deepcopy(source)
    place: Any = job
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return job


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_in_any_field_is_converted_or_refused(source: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places(SOURCES[source])))
    job = changed(SOURCES[source], path, data.draw(VALUES))
    for to in (None, "trainjob"):
        found = converted(job, to)
        assert found is None or found.errors or found.objects
        for error in found.errors if found else ():
            assert str(error)
