"""The launcher's channels follow a job that grows and shrinks (C-14), in the images' shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mpi_trainer.layout.agent import scripts
from mpi_trainer.layout.model import Host

HARNESS = """
. ./channels
. ./verdict
now=5 launched=1 scratch=$PWD run=$PWD/run last=0 numbers=0 channels='' dropped=''
read_uptime() { uptime=5; }
channel() { echo "$1 $2" >>opened; }
here=$PWD
read_hosts
numbers="0$new"
for number in $new; do heard "$number" hello "1 x"; done
echo "begins $numbers"
follow_hosts
echo "unchanged $numbers"
while read -r file; do
    sleep 0.02
    cp "$file" hosts
    follow_hosts
    wait
    echo "before $numbers"
    for number in $new; do heard "$number" hello "1 x"; done
    echo "after $numbers: $(tr '\\n' ' ' <alive)"
done
heard 3 down "closed"
echo "late $numbers $dropped"
"""


def write(path: Path, workers: int) -> None:
    several = [Host(f"w-{n}", f"w-{n}.job.ns.svc", 1) for n in range(workers)]
    path.write_text(scripts.hosts(several).text)


def test_hosts_join_at_their_first_word_and_are_not_missed_when_they_go(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in ("channels", "verdict"):
        (tmp_path / name).write_text(scripts.text(name))
    (tmp_path / "prepare").write_text("echo prepared >>prepared\n")
    for name, workers in (("hosts", 2), ("four", 4), ("one", 1)):
        write(tmp_path / name, workers)
    done = subprocess.run(
        ["sh", "-c", HARNESS],
        cwd=tmp_path,
        input="four\none\n",
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "begins 0 1 2",
        "unchanged 0 1 2",
        "before 0 1 2",
        "after 0 1 2 3 4: w-0.job.ns.svc w-1.job.ns.svc w-2.job.ns.svc w-3.job.ns.svc ",
        "before 0 1",
        "after 0 1: w-0.job.ns.svc ",
        "late 0 1 ",
    ], done.stderr
    opened = (tmp_path / "opened").read_text().splitlines()
    assert sorted(opened) == ["3 w-2.job.ns.svc", "4 w-3.job.ns.svc"], "side by side"
    assert (tmp_path / "prepared").read_text() == "prepared\n"
    assert sorted(p.name for p in (tmp_path / "run").glob("*.gone")) == [
        "2.gone",
        "3.gone",
        "4.gone",
    ]
