"""Plain scalars mean what kubectl takes them for. The table was taken from sigs.k8s.io/yaml 1.6."""

from __future__ import annotations

import pytest

from mpi_trainer.api.yaml.scalars import Scalar, plain

KUBECTL: tuple[tuple[str, Scalar], ...] = (
    ("y", True), ("n", False), ("Y", True), ("yes", True), ("no", False), ("on", True),
    ("off", False), ("True", True), ("TRUE", True), ("tRue", "tRue"),
    ("~", None), ("null", None), ("Null", None), ("", None),
    ("0777", 511), ("0o777", 511), ("0O17", 15), ("08", 8), ("1_000", 1000), ("0x1F", 31),
    ("0b11", 3), ("1:30", "1:30"), ("190:20:30", "190:20:30"),
    ("1e3", 1000), ("1.0", 1), ("2.50", 2.5), (".5", 0.5), ("5.", 5), ("+5", 5), ("-0", 0),
    ("1e-3", 0.001), ("2024-01-01", "2024-01-01"),
    ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), ("=", "="),
    ("18446744073709551615", 18446744073709551615), ("9223372036854775808", 2**63),
    ("1e20", 1e20), ("1e22", 1e22), ("0.1e1", 1), ("-0x1f", -31), ("-0777", -511),
    ("1_0.5", 10.5), ("1__0", 10), ("_1", "_1"), ("0_7", 7), ("+.5", 0.5), ("-.5", -0.5),
    ("1.e3", 1000), ("1E3", 1000), ("0b2", "0b2"), ("0x", "0x"), ("+0x1f", 31), ("-0b11", -3),
    ("00", 0), ("0.", 0), ("0o8", "0o8"), ("-", "-"), ("1.2.3", "1.2.3"), ("text", "text"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "value"), KUBECTL)
def test_plain_scalar_means_what_kubectl_takes_it_for(text: str, value: Scalar) -> None:
    got = plain(text)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", "1e400", "9" * 30, "1" * 9999])
def test_number_without_json_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        plain(text)
