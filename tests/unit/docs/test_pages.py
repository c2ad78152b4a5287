"""Pages name files, links and commands that exist, and decisions keep to their form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src/mpi_trainer"
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "images/**/*.md", "tests/**/*.md")
    for page in ROOT.glob(pattern)
    if ".venv" not in page.parts
)
OURS = sorted({path.name for path in (*ROOT.iterdir(), *SOURCE.iterdir()) if path.is_dir()})
QUOTED = re.compile(r"`([\w.-]+/[\w./*-]*)`")
LINK = re.compile(r"\]\(([^):\s]+)\)")
TARGET = re.compile(r"`make ([a-z0-9-]+)`|^make ([a-z0-9-]+)", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`")
LONGEST_DECISION = 420
"""words: about a page"""
MADE = frozenset({"build/", "dist/"})


def named(page: Path) -> Iterator[str]:
    """Paths of the project in backquotes: those that begin with a folder of ours."""
    for path in QUOTED.findall(page.read_text()):
        if path.partition("/")[0] in OURS and path not in MADE:
            yield path


def found(path: str) -> bool:
    """From the project's folder or the package's, with or without the ending of a module."""
    return any(
        next(base.glob(path + ending), None) is not None
        for base in (ROOT, SOURCE)
        for ending in (("",) if path.endswith("/") else ("", ".py"))
    )


def anchors(page: Path) -> set[str]:
    """As the headings of a page are linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    """A decision that was withdrawn may name what is gone."""
    if "**Status.** Withdrawn" in page.read_text():
        return
    assert [path for path in named(page) if not found(path)] == []


def test_paths_are_recognised() -> None:
    assert len(list(named(ROOT / "ARCHITECTURE.md"))) > 15
    assert len(list(named(ROOT / "CONTRIBUTING.md"))) > 8
    assert not found("decide/no_such_module.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_to_a_page_and_its_heading(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {a or b for a, b in TARGET.findall(page.read_text())} <= targets


@pytest.mark.parametrize("page", ["requirements", "security"])
def test_every_test_named_for_a_requirement_or_a_threat_exists(page: str) -> None:
    tests = TEST.findall((ROOT / f"docs/{page}.md").read_text())
    assert len(tests) > 10
    for path, name in tests:
        text = (ROOT / path).read_text()
        assert not name or f"def {name}(" in text, f"{path} has no {name}"


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_a_page_with_choice_and_the_sign_that_it_was_wrong(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {int(page.name[:4])}. "), "its number stands in name and title"
    assert len(text.split()) <= LONGEST_DECISION
    assert "**Choice.**" in text
    assert "**Wrong if**" in text or "withdrawn" in text.lower()


def test_no_two_decisions_share_a_number() -> None:
    numbers = [page.name[:4] for page in DECISIONS]
    assert len(numbers) == len(set(numbers))


def test_architecture_names_every_package() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert set(rows) == {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_architecture_is_one_page_and_the_glossary_a_short_list() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 110
    glossary = (ROOT / "CONTRIBUTING.md").read_text().partition("## Glossary\n")[2]
    lines = glossary.partition("\n## ")[0].strip().splitlines()
    assert 10 < len(lines) <= 40
