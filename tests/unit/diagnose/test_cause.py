"""Why a job failed, from its output and what else is known (SC-006, OBS-2)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench import diagnose
from mpi_trainer.diagnose import cause
from mpi_trainer.diagnose.evidence import Event, Pod
from mpi_trainer.diagnose.finding import Facts, Finding
from mpi_trainer.diagnose.log_reader import LogReader
from mpi_trainer.layout.agent import summary

STARTED = """\
[rank 0/3] started on n-a
[rank 1/3] started on n-b
[rank 2/3] started on n-c
step 0 loss=1.0
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "/app/train.py", line 22, in <module>
    load(step)
  File "/app/train.py", line 11, in load
    raise KeyError("No space left on device is only a source line")
{}
"""
ABORT = """\
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD
with errorcode 1.
--------------------------------------------------------------------------
"""
PEER = """\
An MPI communication peer process has unexpectedly disconnected.  This
usually indicates a failure in the peer process (e.g., a crash or
  Local host: n-a
  Local PID:  514
  Peer host:  n-b
"""


def found(text: str, facts: Facts | None = None) -> tuple[Finding, ...]:
    facts = Facts(exit_code=1) if facts is None else facts
    return cause.findings(LogReader(facts.hosts).read(text.split("\n")), facts)


def first(text: str, facts: Facts | None = None) -> Finding:
    return found(text, facts)[0]


def test_a_programs_traceback_beats_the_epilogue_of_mpi_which_names_its_rank() -> None:
    finding = first(STARTED + TRACEBACK.format("ValueError: bad batch 10") + ABORT + PEER)
    assert finding.cause == "ProgramException"
    assert finding.line == "ValueError: bad batch 10"
    assert (finding.ranks, finding.hosts) == ((1,), ("n-b",))
    assert finding.followed == ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",
                                "Peer host: n-b")  # fmt: skip
    assert "python -m mpi4py" in finding.remedy


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "GpuOutOf"),
        ("ModuleNotFoundError: No module named 'torch'", "ModuleMissing"),
        ("OSError: [Errno 28] No space left on device: '/data/x'", "DiskFull"),
        ("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "DataInvalid"),
        ("__main__.Overloaded: too many shards", "ProgramException"),
        ("train.<locals>.Broken: too many shards", "ProgramException"),
        ("botocore.exceptions.NoCredentialsError: Unable to locate credentials", "CredentialsMis"),
    ],
)
def test_an_exception_is_told_by_what_it_says(line: str, expected: str) -> None:
    assert first(STARTED + TRACEBACK.format(line)).cause.startswith(expected)


def test_a_line_of_source_in_a_traceback_is_no_cause() -> None:
    assert [f.cause for f in found(TRACEBACK.format("KeyError: 'lr'"))] == ["ProgramException"]


def test_who_only_lost_another_rank_is_not_to_blame() -> None:
    lost = "RuntimeError: [gloo/transport/tcp/pair.cc:589] Connection closed by peer [10.0.0.2]:1"
    raised = "ValueError: bad batch 10"
    finding = first("[1,0]<stderr>:Traceback (most recent call last):\n"
                    f"[1,0]<stderr>:{lost}\n"
                    "[1,3]<stderr>:Traceback (most recent call last):\n"
                    f"[1,3]<stderr>:{raised}\n")  # fmt: skip
    assert (finding.cause, finding.ranks, finding.line) == ("ProgramException", (3,), raised)


def test_a_failure_that_was_overcome_is_not_the_cause_of_a_later_one() -> None:
    ordinary = "".join(f"step {n} loss=0.5\n" for n in range(300))
    killed = "mpirun noticed that process rank 2 with PID 7 on node n-c exited on signal 11 (Seg)."
    text = STARTED + TRACEBACK.format("ValueError: bad batch 10") + ordinary + killed
    assert first(text, Facts(exit_code=139)).cause == "RankSegfault"


def test_a_run_that_ended_well_has_no_finding_whatever_it_printed() -> None:
    text = STARTED + TRACEBACK.format("ValueError: caught and logged") + "ERROR: 3 records failed\n"
    assert found(text, Facts(exit_code=0)) == ()


def test_mpirun_that_lost_a_daemon_has_failed_though_it_leaves_with_0() -> None:
    text = STARTED + "PRTE has lost communication with a remote daemon.\n\n" \
        "  Remote daemon: [prterun-l-1@0,2] on node n-b\n"  # fmt: skip
    finding = first(text, Facts(exit_code=0))
    assert (finding.cause, finding.ranks, finding.hosts) == ("WorkerLost", (1,), ("n-b",))


def test_boilerplate_is_never_shown_and_leads_to_the_host_that_it_names() -> None:
    text = "A daemon failed to report back after being spawned. This could\n" \
        "  Local host:    l\n  Remote host:   n-b\n"  # fmt: skip
    before, during = first(text), first(STARTED + text)
    assert (before.cause, during.cause) == ("MpiDaemonFailed", "WorkerLost")
    assert before.line == during.line == "Remote host: n-b"
    assert during.ranks == (1,)


def test_a_rank_is_found_by_its_host_and_a_host_by_its_rank() -> None:
    text = STARTED + "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n" \
        "=   PID 12599 RUNNING AT n-c\n=   EXIT CODE: 9\n"  # fmt: skip
    assert first(text, Facts(exit_code=255)).ranks == (2,)
    layout = Facts(exit_code=255, hosts=((0, "n-a"), (1, "n-b")))
    said = "Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3)"
    assert first(said, layout).hosts == ("n-b",)


def test_the_rank_of_a_proxy_that_is_left_over_is_the_one_that_died() -> None:
    text = "rank 0 of 3\nrank 1 of 3\nrank 2 of 3\n" \
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n" \
        "=   PID 5 RUNNING AT z-9\n=   EXIT CODE: 6\n" \
        "[proxy:0:0@x-7] HYD_pmcd (a.c:1): assert (!closed) failed\n" \
        "[proxy:0:2@y-8] HYD_pmcd (a.c:1): assert (!closed) failed\n"  # fmt: skip
    finding = first(text, Facts(exit_code=255))
    assert (finding.cause, finding.ranks, finding.hosts) == ("RankAborted", (1,), ("z-9",))


@pytest.mark.parametrize(
    ("facts", "expected", "says"),
    [
        (Facts(signal=9), "LauncherKilled", "SIGKILL"),
        (Facts(exit_code=137), "LauncherKilled", "SIGKILL"),
        (Facts(exit_code=143), "LauncherTerminated", "SIGTERM"),
        (Facts(exit_code=255), "RankExitedNonZero", "exit code 255"),
        (Facts(exit_code=127), "RankExitedNonZero", "not found"),
        (Facts(ended=False), "NoProgress", "still running"),
        (Facts(), "RankExitedNonZero", "not seen"),
    ],
)
def test_silence_is_told_by_the_end_and_the_last_words(
    facts: Facts, expected: str, says: str
) -> None:
    finding = first(STARTED, facts)
    assert (finding.cause, finding.line) == (expected, "step 0 loss=1.0")
    assert says in finding.title
    assert finding.confidence != "certain"


def test_an_unknown_failure_says_what_was_said_last() -> None:
    finding = first("reading mesh\nthe solver gave up\n", Facts(exit_code=5))
    assert (finding.cause, finding.line) == ("UnknownFailure", "the solver gave up")
    assert "exit code 5" in finding.text()


def test_ranks_that_are_all_told_to_end_mean_that_mpirun_was() -> None:
    box = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n" \
        "=   RANK {} PID 2813 RUNNING AT {}\n=   KILLED BY SIGNAL: 15 (Terminated)\n"  # fmt: skip
    one, both = box.format(2, "n-c"), box.format(2, "n-c") + box.format(1, "n-b")
    assert first(STARTED + one).cause == "RankTerminated"
    assert first(STARTED + both).cause == "LauncherTerminated"
    assert first(STARTED + one, Facts(exit_code=255, seconds=0.0)).cause == "LauncherTerminated"


# --- proofs ---------------------------------------------------------------------------------------


def pod(name: str, **status: object) -> Pod:
    return msgspec.convert({"metadata": {"name": name}, "status": status}, Pod)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('exec: "mpirunn": executable file not found in $PATH: unknown', "ProgramNotFound"),
        ('exec: "/app/run.sh": permission denied: unknown', "ProgramNotExecutable"),
        ("exec /app/run: exec format error", "ProgramWrongArchitecture"),
        ('chdir to cwd ("/work") set in config.json failed: no such file or directory',
         "WorkingDirectoryMissing"),
    ],
)  # fmt: skip
def test_the_runtime_says_why_a_container_did_not_start(message: str, expected: str) -> None:
    """Of one that has started, the message is its program's, which can write anything."""
    message = f"failed to create containerd task: {message}"
    ended = {"exitCode": 128, "reason": "StartError", "message": message}
    status = [{"name": "c", "state": {"terminated": ended}}]
    finding = first("", Facts(exit_code=128, pods=(pod("x-launcher", containerStatuses=status),)))
    assert (finding.cause, finding.confidence) == (expected, "certain")
    assert message in finding.line
    ran = [{"name": "c", "state": {"terminated": {**ended, "reason": "Error"}}}]
    finding = first("", Facts(exit_code=128, pods=(pod("x-launcher", containerStatuses=ran),)))
    assert finding.cause == "UnknownFailure"


def test_a_container_state_beats_every_guess_from_text() -> None:
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    killed = pod("n-b", containerStatuses=[{"name": "c", "state": ended}])
    finding = first(STARTED + TRACEBACK.format("ValueError: x"), Facts(exit_code=1, pods=(killed,)))
    assert (finding.cause, finding.confidence) == ("OutOfMemory", "certain")
    assert (finding.ranks, finding.hosts) == ((1,), ("n-b",))


def test_a_disrupted_pod_was_preempted() -> None:
    why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    taken = pod("n-b", conditions=[{**why, "message": "preempting to accommodate a higher one"}])
    assert first(STARTED, Facts(exit_code=1, pods=(taken,))).cause == "Preempted"


def test_events_tell_of_quota_and_images() -> None:
    def event(reason: str, message: str) -> Event:
        said = {"type": "Warning", "reason": reason, "message": message}
        return msgspec.convert({"involvedObject": {"name": "p"}, **said}, Event)

    full = event("FailedCreate", "pods is forbidden: exceeded quota: q, requested: cpu=4")
    assert first("", Facts(exit_code=1, events=(full,))).cause == "QuotaExceeded"
    waits = pod("n-b", containerStatuses=[{"name": "c", "state": {"waiting": {"reason": "ErrImagePull"}}}])  # fmt: skip  # noqa: E501
    assert first("", Facts(ended=False, pods=(waits,))).cause == "ImagePullFailed"
    assert (
        first("", Facts(exit_code=1, events=(event("FailedMount", "x"),))).cause == "VolumeFailed"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bad 1 n-b signal=9 pid=7 oom=1", "OutOfMemory"),
        ("bad 1 n-b signal=11 pid=7", "RankSegfault"),
        ("bad 1 n-b status=3 pid=7", "RankExitedNonZero"),
        ("raised 1 n-b train.py:3 ValueError: x", "ProgramException"),
        ("down n-b silent", "WorkerLost"),
        ("foreign 0-2 n-b", "MpiLibraryMismatch"),
    ],
)
def test_what_the_agent_has_seen_is_a_proof(line: str, expected: str) -> None:
    told = summary.parse(f"mpi-agent 1\nlevel full\nended Command 1\n{line}\n")
    finding = first("", Facts(exit_code=1, summary=told))
    assert finding.cause == expected
    if expected != "MpiLibraryMismatch":
        assert finding.hosts == ("n-b",)


def test_the_text_of_a_finding_names_few_and_counts_the_rest() -> None:
    many = Finding("C", "likely", "T", "R.", tuple(range(9)), ("a", "b", "c", "d"), "line")
    assert many.text() == "T (ranks 0, 1, 2, 3 and 5 more on a, b, c and 1 more): line\nR."
    assert Finding("C", "likely", "T", "R.", (3,)).text() == "T (rank 3)\nR."


# --- real outputs ---------------------------------------------------------------------------------


LOGS = Path(__file__).parent / "logs"
LAUNCHES = Path(__file__).parent / "launches"


def test_real_outputs_of_four_mpis_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """SC-006. What `mpirun -n 3` printed of programs that fail, and of some that do not."""
    assert diagnose.main([str(LOGS)]) == 0
    counted = capsys.readouterr().out.splitlines()
    assert counted[-1] == "cause 39/39 rank 20/20 host 0/0"
    assert "0 lines of boilerplate shown; 0 causes for runs without a failure" in counted[-2]


def test_other_names_and_another_order_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    diagnose.main([str(LOGS), "--renamed", "3"])
    assert capsys.readouterr().out.splitlines()[-1] == "cause 117/117 rank 60/60 host 0/0"


def test_real_outputs_of_six_builds_of_mpi_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """SC-006. On three hosts: options, hostfiles, bindings, networks, disks and accounts that
    mpirun cannot use, wrong calls of MPI, and signals."""
    assert diagnose.main([str(LAUNCHES)]) == 0
    counted = capsys.readouterr().out.splitlines()
    assert counted[-1] == "cause 158/158 rank 41/41 host 52/52"
    assert "0 lines of boilerplate shown" in counted[-2]
    diagnose.main([str(LAUNCHES), "--renamed", "3"])
    counted = capsys.readouterr().out.splitlines()
    assert counted[-1] == "cause 474/474 rank 123/123 host 156/156"


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (127, "", "ProgramNotFound"),
        (126, "", "ProgramNotExecutable"),
        (126, "sh: 1: exec: /app/solver: Exec format error", "ProgramWrongArchitecture"),
        (127, "./a.out: error while loading shared libraries: libfoo.so.1: cannot open shared "
         "object file: No such file or directory", "SharedLibraryMissing"),
    ],
)  # fmt: skip
def test_what_a_shell_says_is_more_exact_than_its_exit_code(
    code: int, text: str, expected: str
) -> None:
    told = f"Launcher x ended with exit code {code}. A program was not found or cannot be run."
    facts = Facts(exit_code=code, reason="ProgramNotFound", message=told)
    finding = first(text, facts)
    assert (finding.cause, finding.confidence != "possible") == (expected, True)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("sys.exit(3)", "RankExitedNonZero"),
        ("sys.exit('no images below /data')", "ProgramReportedError"),
        ("ValueError: sys.exit(3)", "ProgramException"),
    ],
)
def test_a_rank_that_called_sys_exit_did_not_stand_still(how: str, expected: str) -> None:
    raised = summary.Raised(rank=1, pod="n-b", where="", what=how)
    facts = Facts(
        exit_code=1,
        reason="RankStuck",
        message=f"Rank 1 on n-b has failed ({how}) and waits in MPI_Finalize.",
        summary=summary.Summary(level="full", raised=(raised,)),
    )
    finding = first("", facts)
    assert (finding.cause, finding.ranks, finding.hosts) == (expected, (1,), ("n-b",))


@pytest.mark.parametrize(
    "message",
    ["Worker x-worker-1 was deleted while the launcher ran",
     "Worker x-worker-1 was running and is gone; it was deleted, or its node was"],
)  # fmt: skip
def test_a_pod_that_somebody_deleted_is_the_cause(message: str) -> None:
    finding = first("", Facts(reason="WorkerPodFailed", message=message))
    assert (finding.cause, finding.hosts) == ("PodDeleted", ("x-worker-1",))


def test_a_rank_that_the_agent_names_goes_before_those_that_it_has_ended() -> None:
    """Open MPI marks no lines on a cluster, so a traceback does not say whose it is."""
    text = TRACEBACK.format("OSError: [Errno 28] No space left on device")
    ended = (summary.BadRank(rank=0, pod="n-a", signal=15), summary.BadRank(1, "n-b", signal=15))
    facts = Facts(
        exit_code=143,
        reason="RankStuck",
        message="Rank 1 on n-b has failed (OSError: [Errno 28] ...) and waits in MPI_Finalize.",
        summary=summary.Summary(level="full", bad=ended),
    )
    finding = first(text, facts)
    assert (finding.cause, finding.ranks, finding.hosts) == ("DiskFull", (1,), ("n-b",))


@pytest.mark.parametrize(("counted", "led_to_memory"), [(0, False), (None, True), (1, True)])
def test_where_the_kernel_killed_nothing_for_memory_the_remedy_is_not_memory(
    counted: int | None, led_to_memory: bool
) -> None:
    """OBS-2: `odh run` prints the remedy, and memory was not it."""
    said = summary.Summary(
        level="full",
        bad=(summary.BadRank(1, "n-b", signal=9),),
        hosts=(summary.OnHost("n-b", summary.Ranks(((1, 1),)), oom=counted),),
    )
    finding = first(STARTED, Facts(exit_code=137, summary=said))
    assert (finding.cause, finding.ranks) == ("RankKilled", (1,))
    assert ("OOM" in finding.remedy) == led_to_memory


HOSTILE = "\x1b]0;title\x07\x1b[31m\x9b2J\u202etext\r\x08"


@pytest.mark.parametrize(
    "text",
    [
        f"last words {HOSTILE}",
        f"ValueError: {HOSTILE}",
        f"{'-' * 74}\nPRTE has met {HOSTILE}\n{'-' * 74}",
        f"[mpiexec@{HOSTILE}] thing (x.c:1): {HOSTILE} broke",
        f"ssh: connect to host n{HOSTILE} port 22: Connection refused {HOSTILE}",
        f"MPI_ABORT was invoked on rank 1 in communicator {HOSTILE}" * 100,
    ],
)
def test_a_finding_is_bounded_and_moves_no_terminal(text: str) -> None:
    """S-2: programs write the lines that are shown."""
    for finding in found(text):
        shown = [finding.title, finding.line, *finding.followed, *finding.hosts]
        assert all(one.isprintable() and len(one) <= 300 for one in shown)
        assert "text" in finding.line or finding.cause != "UnknownFailure"


def test_nobody_is_to_blame_for_a_time_limit() -> None:
    ended = (summary.BadRank(rank=0, pod="n-a", signal=9), summary.BadRank(1, "n-b", signal=9))
    facts = Facts(exit_code=241, summary=summary.Summary(level="full", bad=ended))
    finding = first("The user-provided time limit for job execution has been reached:", facts)
    assert (finding.cause, finding.ranks, finding.hosts) == ("TimeLimit", (), ())


@pytest.mark.parametrize(("reason", "ended"), [("", False), ("DeadlineExceeded", True)])
def test_a_job_whose_workers_never_answered_says_so(reason: str, ended: bool) -> None:
    """A network policy may refuse connections; the agent waits on, as for an sshd that starts."""
    reader = LogReader()
    line = (
        "mpi-agent: waiting for 2 of 2 workers: x-worker-0 (Connection refused\r), x-worker-1 (\n"
    )
    reader.feed(line)
    facts = Facts(exit_code=None, ended=ended, reason=reason, message="It took too long.")
    finding = cause.concluded(reader, facts)[0]
    assert (finding.cause, finding.hosts) == ("SshConnectionRefused", ("x-worker-0",))
    reader.feed(f"{line}step 1\n")
    after = cause.concluded(reader, Facts(exit_code=1, reason="DeadlineExceeded"))
    assert after[0].cause == "TimeLimit"


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        ("Connection refused", "SshConnectionRefused"),
        ("Name or service not known", "NameResolution"),
        ("Temporary failure in name resolution", "NameResolution"),
        ("Permission denied (publickey)", "SshPermissionDenied"),
        ("No route to host", "WorkerUnreachable"),
        ("Host key verification failed", "SshHostKeyUnknown"),
        ("Connection reset by peer", "SshConnectionClosed"),
    ],
)
def test_what_the_agent_waited_for_is_the_cause_only_where_it_did_not_come(
    why: str, expected: str
) -> None:
    """The agent repeats the last words of ssh. Names of pods come a moment after the pods."""
    reader = LogReader()
    reader.feed(f"mpi-agent: waiting for 1 of 2 workers: x-worker-1 ({why})\n")
    gone = cause.concluded(reader, Facts(exit_code=None, ended=True, reason="DeadlineExceeded"))
    assert (gone[0].cause, gone[0].hosts) == (expected, ("x-worker-1",))
    reader.feed(f"step 1\n{TRACEBACK.format('ValueError: bad batch')}")
    assert cause.concluded(reader, Facts(exit_code=1))[0].cause == "ProgramException"


def test_a_rank_that_the_agent_saw_end_by_sigterm_is_not_the_launcher() -> None:
    """Hydra says the same of all ranks, whoever was first."""
    text = "".join(
        f"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n"
        f"=   PID {pid} RUNNING AT {host}\n=   EXIT CODE: 15\n"
        for pid, host in ((7, "n-a"), (8, "n-b"))
    )
    ended = (summary.BadRank(rank=1, pod="n-b", signal=15),)
    facts = Facts(
        exit_code=255,
        summary=summary.Summary(level="full", bad=ended),
        blamed_rank=1,
        blamed_host="n-b",
    )
    assert first(text, facts).cause == "RankTerminated"
    assert first(text, Facts(exit_code=255)).cause == "LauncherTerminated"


def test_whom_the_status_blames_is_named_where_no_line_says_who_it_was() -> None:
    text = "/bin/sh: 1: /opt/mpi/bin/hydra_pmi_proxy: not found"
    facts = Facts(exit_code=255, reason="LauncherPodFailed", blamed_host="n-b")
    finding = first(text, facts)
    assert (finding.cause, finding.hosts) == ("MpiMissingOnWorker", ("n-b",))


def test_both_ends_of_a_connection_that_gets_no_answer_are_named() -> None:
    message = "Connections from n-a to n-b get no answer, so their ranks cannot meet."
    finding = first("", Facts(reason="Unreachable", message=message, blamed_host="n-a"))
    assert (finding.cause, finding.hosts) == ("WorkerUnreachable", ("n-a", "n-b"))


def test_a_host_is_named_once_with_its_domain_or_without() -> None:
    text = "[n-b.train.default.svc:88] *** Process received signal ***\n"
    text += "[n-b.train.default.svc:88] Signal: Segmentation fault (11)\n"
    bad = summary.BadRank(rank=1, pod="n-b", signal=11)
    facts = Facts(exit_code=1, summary=summary.Summary(level="full", bad=(bad,)))
    assert first(text, facts).hosts == ("n-b",)


@pytest.mark.parametrize(
    ("reason", "why", "expected"),
    [
        ("SchedulingTimeout", "of 3 nodes 3 have too little cpu left", "NoNodeFits"),
        ("SchedulingTimeout", "quota exceeded: `few` has no room: 1 of 1 pods", "QuotaExceeded"),
        ("SchedulingTimeout", "cannot get image `x:1`: nodes lack it", "ImagePullFailed"),
        ("SchedulingTimeout", 'persistentvolumeclaim "data" not found', "VolumeFailed"),
        ("SchedulingTimeout", 'cannot start (CreateContainerConfigError): secret "x" not found',
         "ContainerStartFailed"),
        ("WorkersMissing", "for 10 s DNS has known no name of this cluster", "NameResolution"),
        ("WorkersMissing", "after 10 s there is no answer from 2 workers", "WorkerUnreachable"),
        ("Preempted", "it had to make room: Preempted to accommodate a workload", "Preempted"),
    ],
)  # fmt: skip
def test_what_a_job_has_waited_for_too_long_is_in_its_message(
    reason: str, why: str, expected: str
) -> None:
    facts = Facts(exit_code=None, reason=reason, message=f"Not all pods ran within 30 s: {why}.")
    finding = cause.concluded(LogReader(), facts)[0]
    assert (finding.cause, finding.confidence != "possible") == (expected, True)
