"""How deep JSON is, and what is left without its depths, whatever the text is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.api.yaml import nesting, typed

KEYS = st.text('{["\\', max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('{}[]"\\a', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


def levels(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(levels, value.values() if isinstance(value, dict) else value), default=0)


@given(JSON)
def test_depth_is_that_of_the_value(value: Any) -> None:
    assert nesting.depth(json.dumps(value).encode()) == levels(value)


@given(JSON, st.integers(1, 4))
def test_pruned_keeps_what_is_not_deep(value: Any, most: int) -> None:
    text = json.dumps(value).encode()
    left = nesting.pruned(text, most)
    assert levels(json.loads(left)) <= most
    assert nesting.was_pruned(left) == (levels(value) > most)
    if levels(value) <= most:
        assert left == text


@given(JSON, JSON)
def test_pruned_texts_are_the_same_only_where_the_texts_are(one: Any, other: Any) -> None:
    first, second = json.dumps(one).encode(), json.dumps(other).encode()
    assert (nesting.pruned(first, 1) == nesting.pruned(second, 1)) == (first == second)


@given(st.binary(max_size=200) | st.text('{}[]"\\', max_size=200).map(str.encode))
def test_any_bytes_are_taken(text: bytes) -> None:
    nesting.depth(text)
    nesting.pruned(text, 2)


def test_what_the_decoder_refuses_can_be_read_without_its_depths() -> None:
    """S-3."""
    body = b'{"name":"a","x":' + b'{"a":' * 1100 + b"1" + b"}" * 1101
    with pytest.raises(typed.TooDeep, match="nested too deeply"):
        typed.decode(body, dict[str, Any])
    with pytest.raises(msgspec.ValidationError):
        typed.decode(body, dict[str, Any])
    assert typed.decode(typed.shallow(body), dict[str, Any])["name"] == "a"
