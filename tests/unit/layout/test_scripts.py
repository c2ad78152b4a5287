"""The scripts as pods get them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import mpi_trainer.layout.agent
from mpi_trainer.layout.agent import scripts
from mpi_trainer.layout.model import Host

SOURCES = sorted(Path(mpi_trainer.layout.agent.__file__).parent.glob("*.sh"))


def understood(script: str, path: Path) -> list[str]:
    """What a shell has understood, as it would write it; empty lines carry no meaning outside of
    strings, and inside of them there are none."""
    path.write_text(script)
    command = ["bash", "--norc", "--pretty-print", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return [line for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_shell_understands_the_same_with_and_without_comments(
    source: Path, tmp_path: Path
) -> None:
    whole, carried = source.read_text(), scripts.text(source.stem)
    assert understood(carried, tmp_path / "a") == understood(whole, tmp_path / "b")
    assert len(carried) < len(whole)


def test_a_word_that_is_lost_would_be_noticed(tmp_path: Path) -> None:
    whole = scripts.text("rank")
    assert understood(whole.replace("mt_orphan=1\n", ":\n"), tmp_path / "a") != understood(
        whole, tmp_path / "b"
    )


def test_hosts_name_their_common_domain_once() -> None:
    """P-7: what a job of thousands of workers may hold is bounded by a ConfigMap."""
    several = [Host(f"w-{n}", f"w-{n}.job.ns.svc", 1) for n in range(3)]
    odd = Host("other", "10.0.0.7", 1)
    text = scripts.hosts([*several, odd]).text
    assert text == ".job.ns.svc\nw-0\nw-1\nw-2\nother 10.0.0.7\n"


@pytest.mark.parametrize("script", ["channels", "prepare"])
def test_scripts_read_hosts_with_and_without_an_address(script: str, tmp_path: Path) -> None:
    """Both loops over `hosts`, as the scripts have them, in the shell that images have."""
    several = [Host("w-0", "w-0.job.ns.svc", 1), Host("w-1", "w-1.job.ns.svc", 1)]
    (tmp_path / "hosts").write_text(scripts.hosts(several).text + "w-2 far.away 10.0.0.7 22\n\n")
    lines = scripts.text(script).splitlines()
    begin = next(n for n, line in enumerate(lines) if "while read -r pod address" in line)
    end = next(n for n, line in enumerate(lines) if n > begin and "esac" in line)
    loop = "\n".join([*lines[begin : end + 2], 'echo "$pod $address"', 'done <"$here/hosts"'])
    command = ["sh", "-euc", f"here={tmp_path} domain=\n{loop}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.splitlines() == ["w-0 w-0.job.ns.svc", "w-1 w-1.job.ns.svc", "w-2 far.away"]
