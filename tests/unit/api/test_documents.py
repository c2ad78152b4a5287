"""Text to data: positions, limits, and nothing but InvalidJob."""

from __future__ import annotations

import pytest

from mpi_trainer.api import errors
from mpi_trainer.api.errors import InvalidJob, Path, Position
from mpi_trainer.api.yaml import documents
from mpi_trainer.api.yaml.documents import Document, parse


def one(text: str) -> Document:
    [document] = parse(text, "f")
    return document


def refusal(text: str) -> str:
    with pytest.raises(InvalidJob) as caught:
        parse(text, "f")
    return str(caught.value)


def test_documents_come_in_order_and_empty_ones_are_skipped() -> None:
    assert [d.data for d in parse("---\na: 1\n---\n# none\n---\nb: 2\n...\n", "f")] == [
        {"a": 1},
        {"b": 2},
    ]


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ((), 1, 1),
        (("a",), 1, 1),
        (("a", "b"), 2, 3),
        (("a", "b", 1), 4, 5),
        (("a", "b", 1, "c"), 4, 5),
        (("a", "missing", "x"), 1, 1),
        (("d", "e"), 6, 5),
    ],
)
def test_position_is_of_the_field_or_what_is_around_it(path: Path, line: int, column: int) -> None:
    document = one("a:\n  b:\n  - x\n  - c: 1\n    k: 2\nd: {e: 3}\n")
    assert document.position(path) == Position("f", line, column)


def test_position_inside_an_alias_is_where_it_was_written() -> None:
    document = one("a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n")
    assert str(document.position(("c", "b"))) == "f:2:3"
    assert str(document.position(("d", "b"))) == "f:2:3"


def test_columns_count_characters() -> None:
    assert str(one("{ü: 1, b: 2}").position(("b",))) == "f:1:8"


def test_own_keys_win_over_merged_ones_and_earlier_merges_over_later() -> None:
    text = "k: &k {a: 1, b: 1}\nl: &l {b: 2, c: 2}\nz:\n  c: 3\n  <<: [*k, *l]\n"
    assert one(text).data["z"] == {"a": 1, "b": 1, "c": 3}


def test_quoted_merge_key_is_an_ordinary_key() -> None:
    assert one('a: {"<<": 1}').data == {"a": {"<<": 1}}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: {<<: 3}", "f:1:5: Syntax error: << merges mappings, and this is an integer"),
        ("a: &a [*a]", "no finished anchor"),
        ("1: x", "a key must be a string, and this one is an integer"),
        ("? [a]\n: x", "this one is a list"),
        ("~: x", "this one is null"),
        ("a: 1\nb:\n  c: 1\n  c: 2", "f:4:3: Duplicate value: the key `c` occurs twice"),
        ("a: !!binary aGk=", "the tag !!binary is not allowed"),
        ("a: !x [1]", "the tag !x is not allowed"),
        ("a: !!set {b}", "the tag !!set is not allowed"),
        ("a: .nan", "must be finite"),
        ("a: 1e999", "must be finite"),
        ("a: 99999999999999999999", "64 bits"),
        (f"a: {'9' * 5000}", "64 bits"),
        ("", "f:1:1: Syntax error: the file holds no document"),
        ("hello", "a document must be a mapping, and this one is a string"),
        ("a: b\n c: d: e", "Syntax error"),
        ("a: [1, 2", "Syntax error"),
        ("a: \x00", "f:1:4: Syntax error: the character U+0000"),
        ("a: \ud800", "U+D800"),
        ("x\ny: \x07", "f:2:4: "),
        ("%YAML 3.0\n---\na: 1\n", "Syntax error"),
        ("a: " + "[" * 200, "nested too deeply"),
        ("a: " + "{b: " * 200, "nested too deeply"),
    ],
)
def test_bad_text_is_refused(text: str, part: str) -> None:
    assert part in refusal(text)


def test_deep_aliases_are_refused() -> None:
    deep = "[" * 60 + "]" * 60
    assert "nested too deeply" in refusal(f"a: &a {deep}\nb: {'[' * 60}*a{']' * 60}\n")


def test_large_file_is_refused_before_it_is_read() -> None:
    assert "larger than 4 MiB" in refusal("#" * (documents.MAX_SIZE + 1))


def test_byte_order_mark_is_no_content() -> None:
    assert one("\ufeffa: 1").data == {"a": 1}


def test_tags_of_plain_types_are_obeyed() -> None:
    text = (
        'a: !!str 12\nb: !!int "3"\nc: ! 12\nd: !!map {}\ne: !!seq []\nf: !!timestamp 2026-01-01\n'
    )
    want = {"a": "12", "b": 3, "c": "12", "d": {}, "e": [], "f": "2026-01-01"}
    assert one(text).data == want


def test_kind_of_names_what_json_has_no_name_for() -> None:
    assert errors.kind_of(b"") == "a bytes"


@pytest.mark.parametrize(
    "text",
    [
        "a: b\nname: {{ .Values.name }}\n",
        "a: b\n{{- if .Values.on }}\nc: d\n{{- end }}\n",
        "a: b\nimage: {{ image }}:1\n",
        "a: b\n{% if on %}\nc: d\n",
    ],
)
def test_a_template_that_was_not_rendered_is_called_one(text: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        parse(text, "chart.yaml")
    (error,) = refused.value.errors
    assert ("not rendered" in error.rule, "helm template" in error.remedy) == (True, True)


def test_braces_in_a_sound_line_make_no_template_of_an_error_elsewhere() -> None:
    with pytest.raises(InvalidJob) as refused:
        parse('a: "{{ x }}"\nb: [c\n', "x.yaml")
    assert "template" not in str(refused.value)
