"""Label selectors: what they take, and what is no selector."""

from __future__ import annotations

import pytest

from mpi_trainer.api.label_selector import BadSelector, parse

LABELS = {"team": "a", "tier": "dev", "example.com/queue": "q1", "empty": ""}


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("", True),
        ("team=a", True),
        ("team==a", True),
        ("team = a , tier=dev", True),
        ("team=b", False),
        ("team!=b", True),
        ("team!=a", False),
        ("missing!=a", True),
        ("team", True),
        ("missing", False),
        ("!missing", True),
        ("!team", False),
        ("tier in (dev, test)", True),
        ("tier in (test)", False),
        ("tier notin (test,prod),team=a", True),
        ("tier notin (dev)", False),
        ("missing notin (dev)", True),
        ("example.com/queue=q1", True),
        ("empty=", True),
        ("team=a,team!=a", False),
    ],
)
def test_a_selector_takes_what_kubectl_would_take(text: str, taken: bool) -> None:
    assert parse(text).matches(LABELS) is taken


@pytest.mark.parametrize(
    "text",
    [
        ",",
        "team=a,",
        "team in dev",
        "team in (dev",
        "team in (dev) x",
        "team among (dev)",
        "team a",
        "=a",
        "!",
        "team>1",
        "-bad=a",
        "team=-a-",
        "a/b/c=d",
        "team=a b",
        f"{'k' * 64}=a",
        f"team={'v' * 64}",
    ],
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(BadSelector):
        parse(text)


def test_a_long_selector_takes_time_in_proportion() -> None:
    assert parse(",".join(f"k{i}!=v" for i in range(20_000))).matches(LABELS)
    with pytest.raises(BadSelector):
        parse("(" * 100_000)
