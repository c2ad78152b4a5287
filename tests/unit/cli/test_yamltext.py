"""YAML that is pleasant to read, and means what it was made from."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.cli.output.yaml import written

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], include_characters="\n\t"))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc/."), inner),
    max_leaves=8,
)


@given(DATA)
def test_reading_gives_back_what_was_written(data: object) -> None:
    assert yaml.safe_load(written({"data": data}) + "\n") == {"data": data}


def test_text_of_several_lines_stands_as_it_is() -> None:
    assert written({"a": "one\ntwo\n"}) == "a: |\n  one\n  two"


def test_a_command_is_one_line_and_a_list_of_pods_is_not() -> None:
    assert written({"command": ["mpirun", "-n", "4"]}) == "command: [mpirun, -n, '4']"
    assert written({"pods": [{"name": "a"}]}) == "pods:\n  - name: a"
