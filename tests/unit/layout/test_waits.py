"""What the launcher's agent calls a worker that does not answer, and what it waits for (W-4)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpi_trainer.diagnose import agent_facts
from mpi_trainer.layout.agent import scripts
from mpi_trainer.layout.model import Host

HARNESS = """
. ./channels
. ./verdict
. ./summary
begin_story
now=1000 launched='' scratch=$PWD run=$PWD/run last=0 numbers=0 wait_seconds=110
proof='' proved='' code='' stopped=''
read_uptime() { uptime=5; }
ask_for_names() { :; }
here=$PWD
read_hosts
numbers="0$new"
while read -r now who what rest; do
    case $who in
        names) names_are "$what" ;;
        t) ;;
        *) heard "$who" "$what" "$rest" ;;
    esac
    [ -n "$proof" ] || judge_wait
done
[ -z "$proof" ] || facts
"""
UNKNOWN = "ssh: Could not resolve hostname w-1.job.ns.svc: Name or service not known"
REFUSED = "ssh: connect to host w-1.job.ns.svc port 2222: Connection refused"
TIMED_OUT = "ssh: connect to host w-1.job.ns.svc port 2222: Connection timed out"
DENIED = "mpi@w-1.job.ns.svc: Permission denied (publickey)."


def judged(folder: Path, *lines: str) -> list[str]:
    (folder / "run").mkdir()
    for name in ("channels", "verdict", "summary"):
        (folder / name).write_text(scripts.text(name))
    several = [Host(f"w-{n}", f"w-{n}.job.ns.svc", 1) for n in range(2)]
    (folder / "hosts").write_text(scripts.hosts(several).text)
    done = subprocess.run(
        ["sh", "-c", HARNESS],
        cwd=folder,
        input="".join(f"{line}\n" for line in ("1000 1 hello 1 x", *lines)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not done.stderr
    said = agent_facts.read(done.stdout)
    return [said.reason, said.text]


@pytest.mark.parametrize("said", [UNKNOWN, REFUSED])
def test_a_worker_that_does_not_run_yet_is_waited_for_without_end(
    tmp_path: Path, said: str
) -> None:
    """How long nodes, volumes and images may take is the controller's to say."""
    known = f"{1000 + 3600} names known" if said == UNKNOWN else "4600 t"
    lines = [f"{1000 + i * 60} 2 down {said}" for i in range(60)]
    assert judged(tmp_path, *lines, known, "5000 t") == ["", ""]


@pytest.mark.parametrize(
    ("said", "shown"),
    [(TIMED_OUT, "Connection timed out"), (DENIED, "Permission denied (publickey)")],
)
def test_a_worker_that_runs_and_does_not_answer_is_missing(
    tmp_path: Path, said: str, shown: str
) -> None:
    """From then on that it runs, not from the launcher's start."""
    (tmp_path / "early").mkdir()
    (tmp_path / "late").mkdir()
    before = [f"1010 2 down {UNKNOWN}", f"1400 2 down {REFUSED}", f"1500 2 down {said}"]
    assert judged(tmp_path / "early", *before, "1609 t") == ["", ""]
    reason, text = judged(tmp_path / "late", *before, f"1550 2 down {said}", "1610 t")
    assert reason == "WorkersMissing"
    assert text == f"after 110 s there is no answer from 1 of 2 workers: w-1 ({shown})"


def test_a_worker_whose_name_is_gone_again_is_waited_for(tmp_path: Path) -> None:
    """Its pod was replaced."""
    lines = [f"1010 2 down {TIMED_OUT}", f"1100 2 down {UNKNOWN}", "1200 t", "1900 names known"]
    assert judged(tmp_path, *lines, "2000 t") == ["", ""]


def test_a_dns_that_knows_no_name_of_the_cluster_ends_the_wait(tmp_path: Path) -> None:
    """It is no worker that is late: the pods' dnsPolicy, say, leads elsewhere."""
    lines = [f"1010 2 down {UNKNOWN}", "1015 names unknown", "1124 names unknown"]
    (tmp_path / "early").mkdir()
    (tmp_path / "late").mkdir()
    assert judged(tmp_path / "early", *lines) == ["", ""]
    reason, text = judged(tmp_path / "late", *lines, "1125 t")
    assert reason == "WorkersMissing"
    assert "dnsPolicy" in text


def test_the_words_about_many_workers_fit_into_a_status(tmp_path: Path) -> None:
    """W-4: no bracket is left open."""
    script = HARNESS.replace("read_hosts", "read_hosts; missing_workers; exit")
    for name in ("channels", "verdict", "summary"):
        (tmp_path / name).write_text(scripts.text(name))
    (tmp_path / "run").mkdir()
    pods = [f"{'long-' * 9}name-worker-{n}" for n in range(100)]
    several = [Host(pod, f"{pod}.job.ns.svc", 1) for pod in pods]
    (tmp_path / "hosts").write_text(scripts.hosts(several).text)
    script = script.replace("missing_workers", 'numbers="0$new"; missing_workers')
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.endswith("(no answer yet), and 96 more\n")
    assert len(done.stdout) < 512
