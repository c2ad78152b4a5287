"""The quick reading of YAML gives what the library gives, or leaves the text to it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_trainer.api.yaml import plainyaml, yaml_events
from mpi_trainer.api.yaml.yaml_events import YamlEvent

ROOT = Path(__file__).parents[3]
FILES = sorted(
    file for folder in ("examples", "manifests", "tests/golden", "tests/unit/api/accepted")
    for file in (ROOT / folder).rglob("*.yaml")
)  # fmt: skip
VALUES = (
    *("", "x", "a b", "x:1", "1", "-1", "-", "- x", "--", "0o7", "1.5", "~", "null", "yes", "1:30"),
    *("'q'", '"q"', '"a: b"', "'it''s'", '"a\\n"', '"open', "'a' b", '"a"#', '"a" # c', "a #c"),
    *("a#c", "# c", "[]", "{}", "[a, b]", "[a,b]", "[a, ]", "[a", "{a: b}", "{a: 1, b: [x, y]}"),
    *("{a:b}", '{"a": 1}', '{"a":1}', "{a}", "{a: }", "[a: b]", "[x:1]", "[-1]", "[- a]", "?"),
    *("[a] # c", "[a]#c", "[a] b", "[a #c]", "{a: b}: c", "*a", "&a x", "!t x", "|", ">", "|-"),
    *("@x", "`x`", "[[a], b]", "? x", ": x", ":x", "a: b", "a:", "http://x/y", "$(A)", "<<", "="),
    *("[a b]", "[a  b , c]", "[ a ]", "{ a: b }", "[a.b/c-d, +1]", "[a=b]", "(x)", "x # y # z"),
    *("2024-01-01", "x ", "[a]]", "}", "]", ",", "a,b", "a]b", "x'y", 'x"y', "[x'y]", "~/x", ".5"),
)  # fmt: skip
KEYS = ("", "", "a:", "b:", "name:", "a.b/c-d:", "on:", "<<:", '"q":', "a b:", "1:", "-x:", "a :")
LINES = st.builds(
    lambda indent, dashes, key, value: f"{' ' * indent}{dashes}{key}{' ' if key else ''}{value}",
    st.integers(0, 5),
    st.sampled_from(("", "", "", "- ", "-   ", "- - ", "-")),
    st.sampled_from(KEYS),
    st.sampled_from(VALUES),
)
ODD = st.sampled_from(
    ("---", "--- x", "...", "%YAML 1.1", "# c", "", "  # c", "\t", "a:\tb", "é: x")
)
TEXTS = st.lists(st.one_of(LINES, LINES, LINES, ODD), max_size=7).map("\n".join)


def told(events: Iterable[YamlEvent]) -> list[list[object]]:
    """Documents that hold anything, as what matters in their events."""
    documents: list[list[object]] = []
    for event in events:
        if event.kind == "document":
            documents.append([])
        else:
            documents[-1].append("end" if event.kind == "end" else event)
    return [one for one in documents if not _empty(one)]


def _empty(document: list[object]) -> bool:
    only = document[0]
    return len(document) == 1 and isinstance(only, YamlEvent) and only.plain and not only.value


def agrees(text: str) -> bool:
    """Whether the text was plain; where it was, the library must say the same."""
    found = plainyaml.events(text)
    if found is None:
        return False
    assert told(found) == told(yaml_events.parsed(text))
    return True


@given(TEXTS)
@settings(max_examples=300)
def test_whatever_is_read_is_what_the_library_reads(text: str) -> None:
    agrees(text)


def test_every_file_of_ours_is_read_as_the_library_reads_it() -> None:
    plain = [agrees(file.read_text()) for file in FILES]
    assert sum(plain) > len(plain) / 3


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb:\n- x\n- y: z\n  w: [1, {p: q}]\nc:\n",
        "# head\n---\na:   'x' # y\n---\n\nb: \"c\"\n",
        '{"a": 1, "b": [true, "x"]}',
        "- - a\n  - b\n-\n  c: d\n-\n",
        "a: [mpirun, -n, --x, 4]\nb: |\n\n  # x\n    y: |\n\n  z\n\n# c\nd:\n- |-\n  p\n\n",
    ],
)
def test_the_usual_is_read(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    ["a: >\n  x\n", "a: |+\n  x\n", "a: |\n  x", "a: |\nb: 1\n",
     "a: x\n y\n", "a: &b c\n", "a: 'x\n  y'\n", "a: [\n b]\n", "a:\tb\n", "é: 1\n",
     "a: b: c\n", "a: 'it''s'\n", "a: \"x\\n\"\n", "a: 1\r\n", " a: 1\nb: 2\n", "a: !!str 1\n"],
)  # fmt: skip
def test_the_rest_is_left_to_the_library(text: str) -> None:
    assert plainyaml.events(text) is None
