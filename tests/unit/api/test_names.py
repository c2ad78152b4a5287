from __future__ import annotations

from collections.abc import Callable

import pytest

from mpi_trainer.api import names

Check = Callable[[str], names.Fault | None]


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (names.dns1123_label, "a"), (names.dns1123_label, "1-a"), (names.dns1123_label, "x" * 63),
        (names.dns1035_label, "a-1"), (names.dns1123_subdomain, "a.b-c.1"),
        (names.qualified, "app"), (names.qualified, "example.com/A_b.c"),
        (names.label_value, ""), (names.label_value, "A_1"),
        (names.env_name, "A"), (names.env_name, "a.b-c"), (names.env_name, "my var"),
        (names.data_key, "train.py"), (names.data_key, ".hidden"),
    ],
)  # fmt: skip
def test_good_name_has_no_fault(check: Check, name: str) -> None:
    assert check(name) is None


@pytest.mark.parametrize(
    ("check", "name", "remedy"),
    [
        (names.dns1123_label, "My_Job", "my-job"),
        (names.dns1123_label, "a.b", "`a-b`"),
        (names.dns1123_label, "-", "`my-job`"),
        (names.dns1123_label, "x" * 64, "shorten"),
        (names.dns1123_label, "a\n", "`a`"),
        (names.dns1035_label, "1a", "`a`"),
        (names.dns1123_subdomain, "a-.b", "`a.b`"),
        (names.dns1123_subdomain, "x" * 254, "shorten"),
        (names.qualified, "", "example.com/name"),
        (names.qualified, "/a", "my-job"),
        (names.qualified, "UP/a", "`up`"),
        (names.qualified, "a/b/c", "write"),
        (names.qualified, "x" * 64, "shorten"),
        (names.label_value, "a b", "annotation"),
        (names.label_value, "x" * 64, "annotation"),
        (names.env_name, "", "letters"),
        (names.env_name, "A=B", "letters"),
        (names.env_name, "Ä", "letters"),
        (names.data_key, "a/b", "plain file name"),
        (names.data_key, "..", "plain file name"),
        (names.data_key, ".", "plain file name"),
        (names.data_key, "x" * 254, "shorten"),
    ],
)
def test_bad_name_has_a_remedy(check: Check, name: str, remedy: str) -> None:
    fault = check(name)
    assert fault is not None
    assert remedy in fault.remedy


def test_annotations_have_a_size_limit_in_bytes() -> None:
    assert names.annotations_too_large({"a": "x" * (names.ANNOTATION_BYTES - 1)}) is None
    assert names.annotations_too_large({"a": "ü" * (names.ANNOTATION_BYTES // 2)}) is not None


def test_only_plain_names_can_be_exported_by_a_shell() -> None:
    assert names.shell_env_name("A_1")
    assert not names.shell_env_name("1A")
