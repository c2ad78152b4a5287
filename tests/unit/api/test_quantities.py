from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpi_trainer.api.quantities import binary_text, decimal_text, is_whole, parse, resource_text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"), ("1", "1"), (2, "2"), (0.5, "0.5"), ("500m", "0.5"), ("1.5Gi", "1610612736"),
        ("1k", "1000"), ("1Ki", "1024"), ("2M", "2000000"), ("1E", "1e18"), ("1Ei", str(2**60)),
        ("12e6", "12000000"), ("1E3", "1000"), ("-5m", "-0.005"), ("+.5", "0.5"), ("5.", "5"),
        ("100n", "1e-7"), ("3u", "3e-6"), ("1e-3", "0.001"), ("0.1n", "1e-9"), ("-0.1n", "-1e-9"),
        ("9223372036854775807", "9223372036854775807"), (1e-07, "1e-7"),
        ("1.0000000001", "1.000000001"),
    ],
)  # fmt: skip
def test_quantity_is_exact(text: str | int | float, value: str) -> None:
    assert parse(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "two", "16GB", "1 Gi", "1ki", "1K", "0x10", "1e", "e3", "--1", "1e99", "9" * 65, ".",
     "1Gi ", "\u0661", True, "nan", "inf", "1e1000"],
)  # fmt: skip
def test_other_text_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="must be a quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("value", "text"), [("1.5", "1500m"), ("2", "2"), ("3000", "3k"), ("0", "0"), ("1e-9", "1n")]
)
def test_decimal_text_has_no_fraction(value: str, text: str) -> None:
    assert decimal_text(Decimal(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (16 * 2**30, "16Gi"),
        (1536 * 2**20, "1536Mi"),
        (1000, "1k"),
        (0, "0"),
        (Decimal("0.5"), "500m"),
    ],
)
def test_binary_text_uses_powers_of_1024_where_they_fit(value: int | Decimal, text: str) -> None:
    assert binary_text(Decimal(value)) == text


def test_an_amount_is_written_as_people_write_that_resource() -> None:
    assert resource_text("requests.memory", Decimal(2**30)) == "1Gi"
    assert resource_text("cpu", Decimal("0.5")) == "500m"


def test_text_finer_than_nano_is_refused() -> None:
    with pytest.raises(ValueError, match="nano"):
        decimal_text(Decimal("1e-10"))


@given(st.decimals(min_value=-(10**12), max_value=10**12, places=9))
def test_text_means_the_number_it_was_made_of(number: Decimal) -> None:
    assert parse(decimal_text(number)) == number
    assert parse(binary_text(number)) == number
    assert is_whole(parse(str(int(number))))
