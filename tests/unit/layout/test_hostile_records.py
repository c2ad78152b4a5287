"""What a worker tells the launcher is data: nothing in it runs there (S-16).

The launcher's scripts are given records that only somebody with code on a worker could write, by
every shell that images have.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import mpi_trainer.layout.agent
from mpi_trainer.diagnose import agent_facts

AGENT = Path(mpi_trainer.layout.agent.__file__).parent
SHELLS = [["dash"], ["busybox", "sh"], ["bash", "--posix"], ["bash"]]

HEARD = """
agent=$1 run=$2
launched='' now=100 numbers='0 1' proof='' proved='' code='' stopped=''
dead_seconds=10 start_seconds=100 lost_seconds=20 suspect_seconds=300 scratch=$run looking=1
answers=0 remaining=0 awaited=''
for number in $numbers; do
    eval "pod_$number=host-$number up_$number=1 why_$number= seen_$number=$now behind_$number=0"
    eval "peak_$number=- oom_$number=- hex_$number=-"
done
. "$agent/processes.sh"
. "$agent/channels.sh"
. "$agent/verdict.sh"
. "$agent/summary.sh"
. "$agent/quiet.sh"
begin_story
eval "$(sed -n '/^next() {/,/^}/p' "$agent/launch.sh")"
printf '%s\\n' "$3" | relay 1 >"$run/lines"
while read -r line; do
    printf '%s\\n' "$line" >"$run/one"
    exec 7<"$run/one"
    next
done <"$run/lines"
judge
judge_quiet
living=1
tell_places
MPI_TRAINER_TERMINATION=$run/summary
code=1
summary
echo alive
"""

SUBSTITUTION = "$(id>pwned)"
RECORDS = [
    f"quiet {SUBSTITUTION}",
    f"quiet x[{SUBSTITUTION}]",
    f"placed x[{SUBSTITUTION}]",
    f"place rank={SUBSTITUTION} world=w idle=1 same=1",
    f"place rank=1 world=w idle=1 same=1 frames={SUBSTITUTION};id>pwned calls=`id>pwned`",
    f"start rank=1 size=2;{SUBSTITUTION} world=w by=hydra pid=1",
    f"start rank=1 size={SUBSTITUTION} world=w",
    f"start rank=1 size=x[{SUBSTITUTION}] world=w",
    f"start rank=1 size=2 world=`id>pwned` by={SUBSTITUTION} pid=1",
    "start rank=1 size=2 world=w;id>pwned by=x;id>pwned",
    f"start rank={SUBSTITUTION} size=2 world=w",
    f"end rank=0 world=w status=1 at=x[{SUBSTITUTION}] oom=0",
    f"end rank=0 world=w status={SUBSTITUTION} oom=x[{SUBSTITUTION}] orphan=1;id>pwned",
    f"end rank=0 world=w signal=9;id>pwned aborted={SUBSTITUTION}",
    f"raised rank=0 world=w where={SUBSTITUTION} what={SUBSTITUTION};id>pwned",
    "raised rank=0 world=w where=- what=x\\nend 0 1;id>pwned;x 44 status 1 5 0 0",
    f"hello x[{SUBSTITUTION}] 0100007F",
    f"hello {SUBSTITUTION} {SUBSTITUTION}",
    f"left x[{SUBSTITUTION}]",
    f"left {SUBSTITUTION}",
    f"beat {SUBSTITUTION} {SUBSTITUTION}",
    f"daemon status={SUBSTITUTION}",
    f"syn {SUBSTITUTION}",
    f"waits {SUBSTITUTION} 0",
    "works w;id>pwned 0",
    "beat 1 1\\n0;id>pwned;x beat 1 x",
    "beat 1 1\\n1;id>pwned;x down x",
    "start rank=99999999999999999999 size=2 world=w",
    "start rank=08 size=09 world=w",
    "end rank=0 world=w status=1 at=08",
    "start rank=* size=/* world=/*/*/*",
]


def told(shell: list[str], record: str, folder: Path) -> str:
    """What the launcher says at its end after a rank's start and this record."""
    lines = f"start rank=0 size=1 world=w by=hydra pid=7\n{record}"
    done = subprocess.run(
        [*shell, "-c", HEARD, "launch", str(AGENT), str(folder), lines],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=folder,
    )
    assert done.stdout.endswith("alive\n"), done.stderr
    return (folder / "summary").read_text()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("record", RECORDS)
def test_nothing_of_a_record_runs_in_the_launcher(
    shell: list[str], record: str, tmp_path: Path
) -> None:
    """S-16: code on a worker must not get the launcher and its private key."""
    summary = told(shell, record, tmp_path)
    assert not (tmp_path / "pwned").exists()
    assert summary.startswith("mpi-agent 2\nlevel full\n")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_record_of_a_rank_is_heard_as_before(shell: list[str], tmp_path: Path) -> None:
    record = "end rank=0 world=w pid=7 signal=9 at=123 oom=1 orphan=0"
    summary = told(shell, record, tmp_path)
    assert "world size=1 started=1 ended=1 lost=0 runs=1" in summary
    assert "bad 0 host-1 signal=9 pid=7 oom=1" in summary
    assert "host host-1 0 peak=- oom=-" in summary


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_zeros_in_front_are_no_octal_number(shell: list[str], tmp_path: Path) -> None:
    """A machine that has just started says `008` for eight hundredths of a second."""
    record = "hello 008 0100007F\nend rank=0 world=w pid=7 status=3 at=009 oom=-1"
    assert "bad 0 host-1 status=3 pid=7 oom=0" in told(shell, record, tmp_path)


def many(*ends: str) -> str:
    starts = [f"start rank={n} size={len(ends)} world=w pid={n}" for n in range(len(ends))]
    told = [f"end rank={n} world=w pid=7 {end} at={100 + n}" for n, end in enumerate(ends)]
    return "\n".join((*starts, *told))


@pytest.mark.parametrize("shell", SHELLS[:2], ids=" ".join)
def test_the_first_of_every_kind_of_end_is_told_however_many_came_before(
    shell: list[str], tmp_path: Path
) -> None:
    """The rank that nobody has ended may be seen to end last."""
    ends = ["status=0", *["signal=15 oom=0 orphan=0"] * 40, "signal=11 oom=0 orphan=0", "status=0"]
    summary = told(shell, many(*ends), tmp_path)
    bad = [line.split()[1] for line in summary.splitlines() if line.startswith("bad ")]
    assert bad == ["1", "2", "3", "4", "5", "6", "7", "8", "41"]
    assert "well 0 host-1 at=100 count=2" in summary
    cause = agent_facts.read(summary).cause
    assert cause is not None and (cause.reason, cause.rank) == ("RankKilled", 41)
