"""The part of jsonpath that `-o jsonpath=` understands, and that it refuses the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.cli.output.jsonpath import BadPath, Template

JOB: dict[str, Any] = {
    "metadata": {"name": "train", "labels": {"a.b/c": "x", "it's": "y"}},
    "items": [{"name": "one", "n": 1}, {"name": "two", "ok": True}],
    "pair": ("left", "right"),
    "empty": {},
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("{.metadata.name}", "train"),
        (".metadata.name", "train"),
        ("metadata.name", "train"),
        ("{$.metadata.name}", "train"),
        ("{.metadata['name']}", "train"),
        ("{.metadata.labels['a.b/c']}", "x"),
        ('{.metadata.labels["it\'s"]}', "y"),
        ("{.items[*].name}", "one two"),
        ("{.items[0].name}", "one"),
        ("{.items[-1].name}", "two"),
        ("{.items[7].name}", ""),
        ("{.items[*].n}", "1"),
        ("{.items[1].ok}", "true"),
        ("{.pair[1]}", "right"),
        ("{.missing.deeper}", ""),
        ("{.empty}", "{}"),
        ("{.items[0]}", '{"name":"one","n":1}'),
        ("name={.metadata.name}, n={.items[0].n}", "name=train, n=1"),
        (r'{.metadata.name}{"\n"}', "train\n"),
        ('{"}"}{.metadata.name}', "}train"),
        ("{.metadata.labels.*}", "x y"),
    ],
)
def test_paths_lead_to_values(path: str, wanted: str) -> None:
    assert Template(path).filled(JOB) == wanted


@pytest.mark.parametrize(
    "path",
    [
        "{.items[?(@.n>1)].name}",
        "{range .items[*]}{.name}{end}",
        "{.items[0:2]}",
        "{..name}",
        "{.metadata.name",
        "{.items[}",
        "{.a b}",
    ],
)
def test_what_is_not_understood_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        Template(path)


@given(st.text(alphabet="{}.[]'\"*$@ab01-\\n", max_size=30))
def test_any_text_is_filled_or_refused(text: str) -> None:
    try:
        Template(text).filled(JOB)
    except BadPath as error:
        assert str(error)
