from __future__ import annotations

from mpi_trainer.api.errors import INVALID, FieldError, InvalidJob, Position, field, shorten, under


def test_error_reads_as_in_kubernetes() -> None:
    error = FieldError(
        ("spec", "mpiReplicaSpecs", "Worker", "replicas"),
        INVALID,
        -1,
        "must be at least 1",
        "set replicas to the number of worker pods",
    )
    assert str(error) == (
        "spec.mpiReplicaSpecs.Worker.replicas: Invalid value: -1: must be at least 1;"
        " set replicas to the number of worker pods"
    )


def test_error_without_remedy_or_value_is_short() -> None:
    assert str(FieldError(("a",), INVALID)) == "a: Invalid value"


def test_long_and_strange_values_stay_on_one_line() -> None:
    assert len(str(FieldError((), INVALID, "x\n" * 1000))) < 100
    assert "\n" not in str(FieldError((), INVALID, "x\n"))
    assert "object" in str(FieldError((), INVALID, object()))


def test_keys_that_are_no_words_stand_in_brackets() -> None:
    assert field(("a", 0, "b-c", "x.y/z", 1)) == "a[0].b-c[x.y/z][1]"


def test_invalid_job_is_a_value_error_with_places() -> None:
    error = FieldError(("a",), INVALID, position=Position("f", 2, 3))
    assert isinstance(InvalidJob([error]), ValueError)
    assert str(InvalidJob([error, FieldError(("b",), INVALID)])) == (
        "f:2:3: a: Invalid value\nb: Invalid value"
    )


def test_under_looks_both_up_and_down() -> None:
    assert under(("a", "b"), [("a",)])
    assert under(("a",), [("a", "b")])
    assert not under(("a", "c"), [("a", "b")])


def test_a_value_that_is_cut_keeps_its_closing_quote() -> None:
    assert shorten("a" * 100) == '"' + "a" * 57 + '…"'
    assert len(shorten(["a"] * 100)) == 60
