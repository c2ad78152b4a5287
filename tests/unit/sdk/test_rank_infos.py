"""How ranks ended, as an ended launcher of a cluster tells it."""

from __future__ import annotations

import msgspec

from mpi_trainer.sdk.backends.cluster import observed

SUMMARY = """mpi-agent 1
level full
ended Command 139
cause RankFailed 1 train-worker-1
world size=3 started=3 ended=2 lost=1 runs=1
bad 1 train-worker-1 signal=11 pid=44 oom=0
lost 2 train-worker-2
host train-worker-0 0 peak=- oom=-
host train-worker-1 1 peak=- oom=-
host train-worker-2 2 peak=- oom=-
"""


def test_no_rank_of_an_ended_launcher_is_shown_as_running() -> None:
    """W-8: an empty end means that the rank runs."""
    launcher = {
        "metadata": {
            "name": "train-launcher-x",
            "labels": {"training.kubeflow.org/job-role": "launcher"},
        },
        "spec": {"containers": [{"name": "mpi"}]},
        "status": {
            "phase": "Failed",
            "containerStatuses": [
                {"name": "mpi", "state": {"terminated": {"exitCode": 139, "message": SUMMARY}}}
            ],
        },
    }
    pod = msgspec.convert(launcher, observed.Pod)
    assert [(r.rank, r.end) for r in observed.rank_infos([pod])] == [
        (0, "exit code 0"),
        (1, "signal 11 (SIGSEGV)"),
        (2, "killed or lost"),
    ]
