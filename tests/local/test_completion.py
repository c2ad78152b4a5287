"""Completion of verbs, options and job names, by the shell's own protocol and in a real bash."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.local.cli import ODH, Cli, cli

ASK = """
eval "$(odh completion bash)"
COMP_WORDS=({words} "$1") COMP_CWORD={number}
_odh_completion odh "$1" "" 2>&1
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def odh() -> Iterator[Cli]:
    with cli() as program:
        quick = ("-w", "1", "--mpi", "mpich", "--suspended", "--quiet", "--", "true")
        program("mpijob", "create", "train-one", *quick)
        program("mpijob", "create", "train-two", *quick)
        program("mpijob", "create", "far", "-n", "elsewhere", *quick)
        yield program


def offered(odh: Cli, shell: str, *words: str) -> list[str]:
    """What a shell of that kind is told for the words, the last of them begun."""
    env = {**odh.env, "_ODH_COMPLETE": f"{shell}_complete", "COMP_WORDS": " ".join(words)}
    env["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words) - 1)
    told = subprocess.run(
        [ODH], env=env, cwd=odh.folder, capture_output=True, text=True, timeout=60, check=True
    )
    return told.stdout.splitlines()


@pytest.mark.parametrize("verb", ["get", "logs", "delete", "watch", "clone", "exec", "suspend"])
def test_job_names_are_completed(odh: Cli, verb: str) -> None:
    told = offered(odh, "bash", "odh", "mpijob", verb, "tr")
    assert told == ["plain,train-two", "plain,train-one"]


def test_names_are_those_of_the_namespace(odh: Cli) -> None:
    told = offered(odh, "bash", "odh", "mpijob", "get", "-n", "elsewhere", "f")
    assert told == ["plain,far"]


def test_the_other_grammar_completes_as_well(odh: Cli) -> None:
    assert "plain,train-one" in offered(odh, "bash", "odh", "training", "logs", "mpijob", "tr")


def test_other_shells_show_the_state_beside_the_name(odh: Cli) -> None:
    assert "train-one" in offered(odh, "zsh", "odh", "mpijob", "get", "tr")
    assert any("train-one" in line for line in offered(odh, "fish", "odh", "mpijob", "get", "tr"))


def test_verbs_options_and_formats_are_completed(odh: Cli) -> None:
    assert offered(odh, "bash", "odh", "mpijob", "sus") == ["plain,suspend"]
    assert "plain,--follow" in offered(odh, "bash", "odh", "mpijob", "logs", "--fo")
    assert offered(odh, "bash", "odh", "mpijob", "list", "-o", "y") == ["plain,yaml"]
    assert offered(odh, "bash", "odh", "list", "-o", "cu") == ["plain,custom-columns="]
    assert offered(odh, "bash", "odh", "trainjob", "list", "--sort-by", "d") == ["plain,duration"]


def test_a_broken_store_completes_to_nothing_without_complaint(odh: Cli) -> None:
    broken = odh.folder / "broken/mpi-trainer"
    broken.mkdir(parents=True)
    (broken / "jobs").write_text("not a folder")
    env = {**odh.env, "XDG_STATE_HOME": str(odh.folder / "broken")}
    env |= {"_ODH_COMPLETE": "bash_complete", "COMP_WORDS": "odh mpijob get ", "COMP_CWORD": "3"}
    told = subprocess.run([ODH], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert (told.stdout.strip(), told.stderr) == ("", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash_completes(odh: Cli) -> None:
    script = ASK.format(words="odh mpijob get", number=3)
    env = {**odh.env, "PATH": f"{ODH.parent}:{odh.env['PATH']}"}
    told = subprocess.run(
        ["bash", "-c", script, "bash", "train-o"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told.stdout.split() == ["train-one"]
