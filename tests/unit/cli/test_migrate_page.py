"""MIG-4: the page of `odh migrate report`, which is sent around."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser

from mpi_trainer.cli.verbs.migrate.page import LONGEST, MOST_JOBS, page
from mpi_trainer.migrate.progress import JobProgress, Progress

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\"'&\x1b[2J\u202e"


class Reader(HTMLParser):
    """Elements with what they carry, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_names_of_users_are_text_on_the_page_and_nothing_is_loaded() -> None:
    job = JobProgress(HOSTILE, HOSTILE, HOSTILE, HOSTILE, False, "some", (HOSTILE,))
    made = page(Progress((job,)), HOSTILE, NOW)
    read = Reader(made)
    assert {"script", "img", "link", "iframe"}.isdisjoint(read.tags)
    assert read.attributes <= {"lang", "charset", "http-equiv", "content", "name", "scope", "class"}
    assert "default-src 'none'" in made
    assert "<script>alert(1)</script>" in read.text
    assert "\x1b" not in made and "\u202e" not in made


def test_a_page_stays_small_whatever_is_on_it() -> None:
    long = "x" * 1000
    jobs = tuple(
        JobProgress("ns", long, "v", "MPIJob", False, "some", (f"{long}{n}",))
        for n in range(MOST_JOBS + 5)
    )
    made = page(Progress(jobs), "all namespaces", NOW)
    assert len(made) < MOST_JOBS * (2 * LONGEST + 300)
    assert "And 5 more jobs" in made


def test_a_page_says_how_far_a_cluster_is() -> None:
    jobs = (JobProgress("a", "b", "t", "TrainJob"), JobProgress("a", "c", "m", "MPIJob"))
    made = Reader(page(Progress(jobs), "all namespaces", NOW))
    assert "1 of 2 jobs (50 %) are TrainJobs. As of 2026-01-02 00:00 UTC." in made.text
    assert "0 of 0 jobs are" in Reader(page(Progress(()), "here", NOW)).text
