"""YAML that is pleasant to read, and means what it was made from."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.api.kinds.mpijob import to_wire
from mpi_trainer.api.yaml import load
from mpi_trainer.api.yaml.written import dumped, written
from mpi_trainer.sdk.job.new import NewJob

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


@pytest.mark.parametrize("text", ["y", "N", "on", "1_000", "0o7", "0777", "1:30", "1e3", "", "~"])
def test_text_that_kubectl_would_take_for_something_else_is_quoted(text: str) -> None:
    job = NewJob("one", ("run", text)).mpijob()
    wire = to_wire(job)
    for form in (written(wire), dumped(wire)):
        (found,) = load.objects(form, "file").jobs
        assert found.launcher.template == job.launcher.template
