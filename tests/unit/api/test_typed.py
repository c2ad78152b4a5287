"""Types are built once, whoever comes first."""

from __future__ import annotations

import subprocess
import sys

MANY = """
import sys, threading
from mpi_trainer.api.kinds.pods import PodTemplate
sys.setswitchinterval(1e-6)
pod = PodTemplate.of({"spec": {"containers": [{"name": "a", "image": "x"}]}})
together, seen = threading.Barrier(8), []
def look():
    together.wait()
    seen.append(pod.view.spec.containers[0].name)
threads = [threading.Thread(target=look) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*seen)
"""


def test_threads_that_meet_at_a_type_s_first_use_do_not_crash() -> None:
    """As a notebook's pool of threads would, each submitting a job."""
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["a"] * 8), done.stderr
