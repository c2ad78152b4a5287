"""The catalogue: every rule finds its examples, and no pattern can be made slow."""

from __future__ import annotations

import re
import time

import pytest

from mpi_trainer.diagnose import rules
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.diagnose.rules.ends import BY_SIGNAL
from mpi_trainer.diagnose.rules.kubernetes import BY_REASON
from mpi_trainer.diagnose.rules.model import BAD_TERMINATION, Detail, Rule

CORPUS_CAUSES = """
    HostfileMissing LauncherKilled LauncherTerminated MpiAbort MpiError MpiLibraryMismatch
    MpiLibraryMissing MpiMissingOnWorker NameResolution NoProgress NotEnoughSlots NoUsableNetwork
    OutOfMemory ProgramException ProgramNotExecutable ProgramNotFound RankAborted RankExitedEarly
    RankExitedNonZero RankKilled RankNetworkBlocked RankSegfault RankTerminated RunAsRoot
    SharedLibraryMissing SshClientMissing SshConnectionRefused SshFailed SshHostKeyChanged
    SshKeyFileMode SshPermissionDenied TemporaryDirectoryConflict TemporaryDirectoryFull TimeLimit
    WorkerLost WorkerUnreachable
"""


def name(rule: Rule) -> str:
    return f"{rule.cause} by {rule.needs[:40]}"


@pytest.mark.parametrize("rule", rules.RULES, ids=name)
def test_every_rule_finds_its_examples_in_a_log(rule: Rule) -> None:
    assert rule.examples
    for example in rule.examples:
        found = LogReader().read(["epoch 1", example, "epoch 2"]).hits
        assert rule.cause in {hit.cause for hit in found}, example


def test_no_heavier_rule_takes_an_example_for_something_else() -> None:
    wrong = []
    for rule in rules.RULES:
        for example in rule.examples:
            best = max(LogReader().read([example]).hits, key=lambda hit: hit.weight)
            if rule.cause not in rules.broader(best.cause):
                wrong.append((rule.cause, best.cause, example))
    assert wrong == []


@pytest.mark.parametrize("detail", rules.DETAILS, ids=lambda d: f"{d.of} by {d.needs}")
def test_every_detail_finds_its_example(detail: Detail) -> None:
    assert detail.needs in detail.example
    found = re.search(detail.pattern, detail.example)
    assert found is not None
    assert any(found.groupdict().values())


def test_every_cause_that_is_named_is_in_the_catalogue() -> None:
    named = {rule.cause for rule in rules.RULES} | {detail.of for detail in rules.DETAILS}
    named |= set(BY_SIGNAL.values()) | set(BY_REASON.values())
    named |= {wide for cause in rules.CATALOGUE.values() for wide in cause.broader}
    named |= {rule.instead for rule in rules.RULES} - {""}
    assert named - {BAD_TERMINATION} <= set(rules.CATALOGUE)
    assert set(CORPUS_CAUSES.split()) <= set(rules.CATALOGUE)


def test_every_cause_says_why_and_what_to_do_in_two_sentences_at_most() -> None:
    for cause in rules.CATALOGUE.values():
        assert cause.title
        assert cause.why.endswith(".")
        assert cause.remedy.endswith(".")
        assert cause.remedy.count(". ") <= 1, cause.name
        assert len(cause.remedy) <= 320, cause.name


def test_boilerplate_is_nobodys_example() -> None:
    """What only says that something failed may lead to a host, but is never shown."""
    shown = [r for r in rules.RULES if any(t in r.needs for t in rules.NOISE)]
    assert shown == []


HOSTILE = (" ", "a", "9", "[", "(", "-", ": ", "a-", "a.", "\t", "'", '"', ", ", "/a", "x@", "é")


@pytest.mark.parametrize("rule", [r for r in rules.RULES if r.pattern], ids=name)
def test_no_pattern_takes_long_for_any_line(rule: Rule) -> None:
    """A line has at most 2,000 characters; none of them may cost a millisecond a time."""
    pattern = re.compile(rule.pattern)
    texts = [(example + unit * 2000)[:2000] for example in rule.examples for unit in HOSTILE]
    texts += [(unit * 1000 + example)[:2000] for example in rule.examples for unit in HOSTILE]
    texts += [(rule.needs + " ") * (2000 // (len(rule.needs) + 1))]
    began = time.thread_time()
    for text in texts:
        pattern.search(text)
    assert (time.thread_time() - began) / len(texts) < 0.003
