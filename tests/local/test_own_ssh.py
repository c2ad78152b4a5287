"""Programs that call ssh themselves from the launcher, as horovodrun does, reach the workers."""

from __future__ import annotations

import pytest

from tests.local.odh import run

# horovodrun's options, and one ssh a worker, all at once, with words that must arrive as they are.
SCRIPT = """
for worker in job-worker-0 job-worker-1.job.default.svc; do
    ssh -o PasswordAuthentication=no -o StrictHostKeyChecking=no "$worker" \
        sh -c "'"'echo "$(hostname) says $1 with $GIVEN"'"'" sh "'a  b'" &
done
wait
ssh mpi@job-worker-1 exit 7
echo "code $?"
"""


@pytest.mark.parametrize("isolation", ["namespaces", "loopback"])
def test_an_ssh_of_the_commands_own_reaches_every_worker(isolation: str) -> None:
    """CTL-13, CTL-14: with the job's key, and with the container's environment there."""
    ended = run(
        *("run", "--isolation", isolation, "-w", "2", "--env", "GIVEN=this", "--as-is"),
        *("--name", "job", "--", "sh", "-c", SCRIPT),
    )
    assert ended.returncode == 0, ended.stderr
    assert "code 7" in ended.stdout
    assert ended.stdout.count(" says a  b with this") == 2
