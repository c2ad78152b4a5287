"""docs/cli.md is what the commands say of themselves."""

from __future__ import annotations

from mpi_trainer.cli.verbs.mpijob import VERBS
from tools.clidocs import PAGE, page


def test_the_page_is_up_to_date() -> None:
    """DOC-1: the CLI reference is made from the code."""
    assert PAGE.read_text() == page(), "run `python -m tools.clidocs`"


def test_every_verb_has_a_section_with_an_example() -> None:
    text = PAGE.read_text()
    for verb in VERBS:
        assert f"## odh mpijob {verb}\n" in text
        assert f"\nodh mpijob {verb}" in text.partition(f"## odh mpijob {verb}\n")[2]
