"""What counts as a difference between an object as rendered and as it is on a cluster."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.render.drift import drift

scalars = st.one_of(st.text(), st.integers(), st.booleans(), st.none())
objects = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(max_size=3), inner)),
    max_leaves=10,
)


def changes(wanted: Any, live: Any) -> list[tuple[str, Any, Any]]:
    return [(change.field, change.live, change.wanted) for change in drift(wanted, live)]


@given(objects)
def test_an_object_does_not_differ_from_itself(value: Any) -> None:
    assert not changes(value, value)


def test_what_the_server_added_is_no_difference() -> None:
    wanted = {"spec": {"containers": [{"name": "m", "image": "i"}]}}
    sidecar = {"name": "mesh", "image": "proxy"}
    main = {"name": "m", "image": "i", "imagePullPolicy": "Always"}
    live = {"spec": {"containers": [sidecar, main], "schedulerName": "default"}, "status": {}}
    assert not changes(wanted, live)


def test_a_changed_field_is_told_by_its_path() -> None:
    wanted = {"spec": {"containers": [{"name": "m", "image": "i:2"}]}}
    live = {"spec": {"containers": [{"name": "m", "image": "i:1"}]}}
    assert changes(wanted, live) == [("spec.containers.m.image", "i:1", "i:2")]


def test_what_is_missing_on_the_cluster_is_told() -> None:
    wanted = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    live = {"env": [{"name": "A", "value": "1"}]}
    assert changes(wanted, live) == [("env.B", msgspec.UNSET, {"name": "B", "value": "2"})]


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [(8, "8", True), ("0.5", "500m", True), ("1024Mi", "1Gi", True), ("1", "2", False)],
)
def test_amounts_are_compared_as_amounts(wanted: Any, live: Any, same: bool) -> None:
    assert (not changes({"limits": {"cpu": wanted}}, {"limits": {"cpu": live}})) is same


def test_a_number_that_is_no_amount_is_compared_as_it_is() -> None:
    assert changes({"value": "1.0"}, {"value": "1"})


@pytest.mark.parametrize("empty", ["", [], {}, None])
def test_an_empty_value_that_the_server_did_not_keep_is_no_difference(empty: Any) -> None:
    assert not changes({"a": empty}, {})


def test_false_and_zero_are_not_nothing() -> None:
    assert changes({"a": False, "b": 0}, {}) == [
        ("a", msgspec.UNSET, False),
        ("b", msgspec.UNSET, 0),
    ]


def test_mounts_of_one_volume_are_told_apart_by_their_folders() -> None:
    wanted = [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "x"}]
    live = [{"name": "v", "mountPath": "/b", "subPath": "y"}, {"name": "v", "mountPath": "/a"}]
    assert changes(wanted, live) == [("[/b].subPath", "y", "x")]


def test_lists_of_another_length_differ_as_a_whole() -> None:
    assert changes(["a"], ["a", "b"]) == [("", ["a", "b"], ["a"])]


def test_items_without_names_are_compared_one_by_one() -> None:
    wanted = {"items": [{"key": "a", "mode": 1}, {"key": "b", "mode": 2}]}
    live = {"items": [{"key": "a", "mode": 1, "path": "x"}, {"key": "b", "mode": 3}]}
    assert changes(wanted, live) == [("items[1].mode", 3, 2)]


def test_an_amount_that_cannot_be_read_is_compared_as_it_is() -> None:
    assert changes({"limits": {"cpu": "much"}}, {"limits": {"cpu": "1"}})
